#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""robust_test.py MPIEXEC PROGRAM [--rounds N] [--threads]: jobs of eight processes that go on when processes kill
themselves inside point-to-point and collective calls, calls that do not wait, one-sided calls and calls for files, and
inside MPIX_Comm_shrink. Every job has a few rounds, as long as processes are left; N (30) are all of them together.
With --threads another thread of each process waits for messages meanwhile.
robust_test.py MPIEXEC PROGRAM --job N ARGUMENT...: one job of N processes, with these arguments."""

import argparse
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import Late, communicated  # noqa: E402

PROCESSES = 8
LIMIT = 60  # seconds for a job of rounds; ctest ends another one
PARTS = ("p2p", "collectives", "nonblocking", "rma", "files")

# Hydra 4.0 ends the job in spite of -disable-auto-cleanup when it sees the end of a process that it has started itself;
# and it tells the others by a signal. So it starts a shell, which ignores that, and ends well whatever the program does.
SHELL = 'trap "" USR1; "$@"; code=$?; [ $code = 0 ] || [ $code = 137 ] || echo "rank $PMI_RANK ends with $code"; exit 0'


def run(mpiexec, processes, command, limit=None):
    """What is wrong with a job, or nothing."""
    job = subprocess.Popen(
        [mpiexec, "-disable-auto-cleanup", "-n", str(processes), "sh", "-c", SHELL, "sh", *command],
        env={"CMPI_ROBUST": "1", **os.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said, _ = communicated(job, limit) if limit else job.communicate()
    except Late:
        job.terminate()
        said, _ = job.communicate()
        return f"no end\n{said}"
    good = "No Errors" in said and "ends with" not in said and " line " not in said
    print("\n".join(line for line in said.splitlines() if " rounds, " in line), flush=True)
    return "" if good else said


def rounds_of_deaths(arguments):
    rounds, seed, faults = 0, 0, 0
    while rounds < arguments.rounds:
        for part in PARTS:
            seed += 1
            twice = seed % 3 == 0
            in_job = 3 if twice else 5
            with tempfile.TemporaryDirectory() as folder:
                command = [arguments.program, part, str(seed), str(in_job), "twice" if twice else "once", os.path.join(folder, "file")]
                wrong = run(arguments.mpiexec, PROCESSES, command + ["threads"] * arguments.threads, LIMIT)
            rounds += in_job
            if wrong:
                faults += 1
                print(f"FAIL {part}, seed {seed}, {in_job} rounds{', twice' if twice else ''}:\n{wrong}", flush=True)
            if rounds >= arguments.rounds:
                break
    print(f"{rounds} rounds, {faults} faults")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mpiexec")
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--job", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.job is None:
        return rounds_of_deaths(arguments)
    wrong = run(arguments.mpiexec, int(arguments.job[0]), [arguments.program, *arguments.job[1:]])
    print(wrong or "No Errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
