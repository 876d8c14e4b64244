#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Starts the wire-up job under each launcher that is installed: Hydra (mpiexec.mpich), also over two nodes of one
machine, and Open MPI's mpirun; alone too.  Usage: launchers_test.py JOB"""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402

JOB = sys.argv[1]
# libpmix keeps memory to the end; that is not ours to judge.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
HYDRA = ["mpiexec.mpich"]
OPENMPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]
AT_ONCE = 7.5  # seconds
faults = []


def run(command, limit=30):
    try:
        done = eventually.run(command, limit)
    except eventually.Late as late:
        return "no end", late.out.split("\n"), str(late)
    return done.returncode, sorted(done.stdout.split("\n")[:-1]), done.stderr


def expect(name, condition, seen):
    print(("ok      " if condition else "FAILED  ") + name)
    if not condition:
        print(seen)
        faults.append(name)


def whole_job(name, launcher, client, size):
    code, lines, errors = run(launcher + ["-n", str(size), JOB])
    wanted = [rf"{client} rank {i} of {size} nodes( -?\d+){{{size}}}" for i in range(size)]
    good = code == 0 and len(lines) == size and all(re.fullmatch(w, l) for w, l in zip(wanted, lines))
    nodes = {tuple(line.split("nodes ")[1].split()) for line in lines} if good else set()
    expect(f"{name}: {size} ranks exchange cards", good, (code, lines, errors))
    expect(f"{name}: all ranks tell the same nodes", len(nodes) == 1, lines)
    return nodes.pop() if nodes else ()


def early_ends(name, launcher):
    code, _, errors = run(launcher + ["-n", "3", JOB, "abort", "7"], AT_ONCE)
    expect(f"{name}: abort ends the job with its code, at once", code == 7, (code, errors))
    code, _, errors = run(launcher + ["-n", "3", JOB, "leave", "3"], AT_ONCE)
    expect(f"{name}: a rank that leaves ends the job, at once", code not in (0, "no end"), (code, errors))


code, lines, errors = run([JOB])
expect("alone: rank 0 of 1", code == 0 and lines == ["alone rank 0 of 1 nodes 0"], (code, lines, errors))

def aborts_on_a_busy_machine(name, launcher):
    """Three jobs at a time: the order in which they end then differs each time."""
    codes = []
    for _ in range(30):
        jobs = [subprocess.Popen(launcher + ["-n", "3", JOB, "abort", "7"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL) for _ in range(3)]
        codes += [eventually.finished(job, 30) for job in jobs]
    expect(f"{name}: abort ends 90 jobs with its code", set(codes) == {7}, codes)


if shutil.which(HYDRA[0]):
    expect("hydra: one node", len(set(whole_job("hydra", HYDRA, "pmi1", 4))) == 1, "")
    two = HYDRA + ["-launcher", "fork", "-hosts", "localhost:2,127.0.0.1:2"]
    expect("hydra: two nodes", whole_job("hydra, two proxies", two, "pmi1", 4) == ("0", "0", "1", "1"), "")
    early_ends("hydra", HYDRA)
    aborts_on_a_busy_machine("hydra", HYDRA)
else:
    print("SKIPPED: no mpiexec.mpich (package mpich) on this machine")

if shutil.which(OPENMPI[0]):
    expect("mpirun: one node", len(set(whole_job("mpirun", OPENMPI, "pmix", 4))) == 1, "")
    early_ends("mpirun", OPENMPI)
else:
    print("SKIPPED: no mpirun.openmpi (package openmpi-bin) on this machine")

sys.exit(1 if faults else 0)
