#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes that start others, and names of ports: programs/spawns.cpp under Hydra, without a launcher. spawns_test.py DIR PROGRAM [--many]: DIR has bin/mpiexec; --many starts 64 processes
in each of ten rounds."""

import os
import subprocess
import sys
import tempfile

import jobs

LIMIT = 100  # seconds for each case
launcher = os.path.join(sys.argv[1], "bin", "mpiexec")
program = sys.argv[2]


def start(command, environment=None):
    return subprocess.Popen(command, env=dict(os.environ, **(environment or {})))


def hydra(processes, *arguments):
    return [launcher, "-n", str(processes), program, *arguments]


if "--many" in sys.argv:
    jobs.ends_well("64 in ten rounds", [start(hydra(1, "some", "64", "10"))], LIMIT)
    sys.exit(1 if jobs.failures else 0)

jobs.ends_well("two start three, four times", [start(hydra(2, "some", "3", "4"))], LIMIT)
jobs.ends_well("several programs", [start(hydra(2, "several"))], LIMIT)
jobs.ends_well("no such program", [start(hydra(2, "nothing"))], LIMIT)
jobs.ends_well("no launcher", [start([program, "alone"])], LIMIT)

# Files keep the name for jobs that have no launcher in common; a launcher keeps it for its own.
jobs.ends_well("a name that a launcher keeps", [start(hydra(1, "name"))], LIMIT)
with tempfile.TemporaryDirectory() as folder:
    files = {"CMPI_NAME_FOLDER": os.path.join(folder, "names")}
    jobs.ends_well("a name in a file",
                   [start(hydra(1, "publish", "a name"), files), start([program, "look-up", "a name"], files)], LIMIT)
    jobs.ends_well("a publisher that has ended", [start([program, "no-name", "a name"], files)], LIMIT)
    # A folder that others may write to is not used.
    os.chmod(files["CMPI_NAME_FOLDER"], 0o777)
    jobs.ends_well("a folder of all", [start([program, "no-name", "a name"], files)], LIMIT)

sys.exit(1 if jobs.failures else 0)
