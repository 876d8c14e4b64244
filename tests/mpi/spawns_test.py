#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes that start others, and names of ports: programs/spawns.cpp under Hydra, without a launcher. spawns_test.py DIR PROGRAM [--many]: DIR has bin/mpiexec; --many starts 64 processes
in each of ten rounds."""

import os
import subprocess
import sys
import tempfile

LIMIT = 100  # seconds for each case
launcher = os.path.join(sys.argv[1], "bin", "mpiexec")
program = sys.argv[2]
failures = 0


def start(command, environment=None):
    return subprocess.Popen(command, env=dict(os.environ, **(environment or {})))


def ends_well(name, jobs):
    global failures
    for job in jobs:
        try:
            code = job.wait(LIMIT)
        except subprocess.TimeoutExpired:
            code = "no end"
            job.terminate()
        if code != 0:
            failures += 1
            print(f"FAIL {name}: {code}", flush=True)


def hydra(processes, *arguments):
    return [launcher, "-n", str(processes), program, *arguments]


if "--many" in sys.argv:
    ends_well("64 in ten rounds", [start(hydra(1, "some", "64", "10"))])
    sys.exit(1 if failures else 0)

ends_well("two start three, four times", [start(hydra(2, "some", "3", "4"))])
ends_well("several programs", [start(hydra(2, "several"))])
ends_well("no such program", [start(hydra(2, "nothing"))])
ends_well("no launcher", [start([program, "alone"])])

# Files keep the name for jobs that have no launcher in common; a launcher keeps it for its own.
ends_well("a name that a launcher keeps", [start(hydra(1, "name"))])
with tempfile.TemporaryDirectory() as folder:
    files = {"CMPI_NAME_FOLDER": os.path.join(folder, "names")}
    ends_well("a name in a file",
              [start(hydra(1, "publish", "a name"), files), start([program, "look-up", "a name"], files)])
    ends_well("a publisher that is gone", [start([program, "no-name", "a name"], files)])
    # A folder that others may write to is not believed.
    os.chmod(files["CMPI_NAME_FOLDER"], 0o777)
    ends_well("a folder of all", [start([program, "no-name", "a name"], files)])

sys.exit(1 if failures else 0)
