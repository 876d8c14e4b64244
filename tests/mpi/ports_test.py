#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Jobs that meet: programs/ports.cpp in two jobs, or in two halves of one, under Hydra and without a launcher.
ports_test.py DIR PROGRAM: DIR has bin/mpiexec."""

import os
import subprocess
import sys
import tempfile

import jobs

LIMIT = 60  # seconds for each case
launcher = os.path.join(sys.argv[1], "bin", "mpiexec")
program = sys.argv[2]


def start(processes, *arguments, environment=None):
    command = [program, *arguments] if processes == 0 else [launcher, "-n", str(processes), program, *arguments]
    return subprocess.Popen(command, env=dict(os.environ, **(environment or {})))


def pair(name, first, second, rounds=2, environment=None):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "port")
        jobs.ends_well(name, [start(*job, file, str(rounds), environment=environment) for job in (first, second)], LIMIT)


pair("one and one", (1, "serve"), (1, "call"))
pair("two and three", (2, "serve"), (3, "call"))
pair("without a launcher", (0, "serve"), (0, "call"))
pair("frames of the default NIC inside", (3, "serve"), (2, "call"), environment={"CMPI_PROTOCOL": "via"})
pair("a socket of the program's", (1, "join-first"), (1, "join-second"))
pair("not one message", (3, "serve-silently"), (2, "call-silently"), rounds=20)
for size in 2, 3, 4:
    jobs.ends_well(f"halves of {size}", [start(size, "halves")], LIMIT)
jobs.ends_well("wrong calls", [start(1, "wrong")], LIMIT)
with tempfile.TemporaryDirectory() as folder:
    port = os.path.join(folder, "port")
    survivor = start(2, "survive", port)
    # Without a launcher: what Hydra says of a process that ends without MPI_Finalize depends on what it sees first.
    jobs.ends_well("a caller that dies", [start(0, "die", port)], LIMIT)
    jobs.ends_well("after a death", [start(2, "call", port, "1"), survivor], LIMIT)
for place in "inside", "outside":
    with tempfile.TemporaryDirectory() as folder:
        port = os.path.join(folder, "port")
        killed = start(0, f"be-killed-{place}", port)
        jobs.ends_well(f"a death {place} MPI, without a message before", [start(2, "outlive", port)], LIMIT)
        killed.kill()
        killed.wait()

sys.exit(1 if jobs.failures else 0)
