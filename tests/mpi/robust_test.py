#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""robust_test.py MPIEXEC PROGRAM [ROUNDS]: jobs of eight processes that go on when processes kill themselves inside
point-to-point and collective calls, calls that do not wait, one-sided calls and calls for files, and inside
MPIX_Comm_shrink. Every job has a few rounds, as long as processes are left; ROUNDS (30) are all of them together."""

import os
import subprocess
import sys
import tempfile

PROCESSES = 8
LIMIT = 60  # seconds for a job
PARTS = ("p2p", "collectives", "nonblocking", "rma", "files")

# Hydra 4.0 ends the job in spite of -disable-auto-cleanup when it sees the end of a process that it has started itself;
# and it tells the others by a signal. So it starts a shell, which ignores that, and ends well whatever the program does.
SHELL = 'trap "" USR1; "$@"; code=$?; [ $code = 0 ] || [ $code = 137 ] || echo "rank $PMI_RANK ends with $code"; exit 0'


def run(mpiexec, program, part, seed, rounds, twice):
    """What is wrong with a job, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        command = [mpiexec, "-disable-auto-cleanup", "-n", str(PROCESSES), "sh", "-c", SHELL, "sh", program, part, str(seed), str(rounds),
                   "twice" if twice else "once", os.path.join(folder, "file")]
        job = subprocess.Popen(command, env=dict(os.environ, CMPI_ROBUST="1"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            said, _ = job.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            job.terminate()
            said, _ = job.communicate()
            return f"no end\n{said}"
    good = "No Errors" in said and "ends with" not in said and " line " not in said
    print("\n".join(line for line in said.splitlines() if " rounds, " in line), flush=True)
    return "" if good else said


def main():
    mpiexec, program = sys.argv[1:3]
    wanted = int(sys.argv[3]) if len(sys.argv) > 3 else 30
    rounds, seed, faults = 0, 0, 0
    while rounds < wanted:
        for part in PARTS:
            seed += 1
            twice = seed % 3 == 0
            in_job = 3 if twice else 5
            wrong = run(mpiexec, program, part, seed, in_job, twice)
            rounds += in_job
            if wrong:
                faults += 1
                print(f"FAIL {part}, seed {seed}, {in_job} rounds{', twice' if twice else ''}:\n{wrong}", flush=True)
            if rounds >= wanted:
                break
    print(f"{rounds} rounds, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
