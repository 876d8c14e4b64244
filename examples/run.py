#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs one of the examples and looks at what it prints.  Usage: run.py NAME PROGRAM

It has to end with 0, and each of the expected lines has to be there."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

name, program = sys.argv[1:3]
RANKS = "3"
LIMIT = 120
EXPECTED = {
    "client_server": [r"server: asked: what is the time\?", r"client: the answer has 12 bytes: ten to four"],
    "peers": [r"caller: connected .* got: good day from 2", r"waiter: connected .* got: good day from 1"],
    "cq_server": [r"clients: 8 answers", r"server: 8 requests by one queue"],
    "rdma_copy": [r"copied 100003 bytes"],
    "notify": [r"handler: heard: message 0", r"handler: heard: message 4", r"waiter: 5 messages"],
    "reliability": [r"Unreliable: the connection goes on", r"Reliable Delivery: the connection is broken",
                    r"Reliable Reception: the connection is broken"],
    "several_nics": [r"/dev/via_eth0: transfers of up to \d+ bytes", r"paramnet: .*", r"    arrived: once around"],
    "atomics": [r"caller: the last step found 999", r"caller: compare and swap found 1000", r"waiter: the counter is 42"],
    "ring": [r"the sum of 3 ranks is 3, from rank 2"],
    "halo": [r"3 ranks, 500 steps: heat \d+\.\d+"],
    "counter": [r"1000 items were taken by 3 ranks"],
    "file": [r"3000 numbers in .*, 0 wrong"],
}
MPI = ("ring", "halo", "counter", "file")

command = [program]
if name in MPI:
    mpiexec = shutil.which("mpiexec.hydra") or shutil.which("mpiexec.mpich")
    if mpiexec is None:
        print("SKIPPED: no mpiexec.hydra (package mpich) on this machine")
        sys.exit(77)
    command = [mpiexec, "-n", RANKS, program]

with tempfile.TemporaryDirectory() as folder:
    source, copy = os.path.join(folder, "from"), os.path.join(folder, "to")
    content = os.urandom(100003)
    with open(source, "wb") as file:
        file.write(content)
    command += {"rdma_copy": [source, copy], "several_nics": ["/dev/via_eth0", "paramnet"],
                "file": [os.path.join(folder, "numbers")]}.get(name, [])
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    print(done.stdout + done.stderr, end="")
    copied = b""
    if name == "rdma_copy" and os.path.exists(copy):
        with open(copy, "rb") as file:
            copied = file.read()

lines = done.stdout.splitlines()
missing = [wanted for wanted in EXPECTED[name] if not any(re.match(wanted, line) for line in lines)]
if name == "rdma_copy" and copied != content:
    missing.append("the same bytes in the copy")
if done.returncode != 0 or missing:
    sys.exit(f"ended with {done.returncode}; missing: {missing}")
