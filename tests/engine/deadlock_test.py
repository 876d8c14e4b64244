#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Deadlocks of jobs, found by cmpiinfo --job.  Usage: deadlock_test.py CMPIINFO PROGRAM

Each job is started under mpiexec and never ends by itself; cmpiinfo names the circle of waits, with what each rank of it
waits for. A job in which a rank computes has none."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

tool, program = sys.argv[1:3]
mpiexec = shutil.which("mpiexec.hydra") or shutil.which("mpiexec.mpich")
if mpiexec is None:
    print("SKIPPED: no mpiexec.hydra (package mpich) on this machine")
    sys.exit(77)
faults = 0
RANKS = 3
LIMIT = 30


def expect(name, condition, seen=""):
    global faults
    print(("ok      " if condition else "FAILED  ") + name, flush=True)
    if not condition:
        faults += 1
        print(seen, flush=True)


def look(*arguments):
    done = subprocess.run([tool, "--job", *arguments], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def in_job(how, protocol, check):
    """Runs the job, calls check(process number of rank 0), ends the job."""
    job = subprocess.Popen([mpiexec, "-n", str(RANKS), program, how], stdout=subprocess.PIPE, text=True, start_new_session=True,
                           env={**os.environ, "CMPI_PROTOCOL": protocol})
    try:
        check(job.stdout.readline().strip())
    finally:
        os.killpg(job.pid, signal.SIGTERM)
        job.wait()
        job.stdout.close()


def until(pid, holds):
    """The job as JSON when `holds`, or the last one before the limit; and the end code."""
    end = time.monotonic() + LIMIT
    while True:
        code, out, errors = look(pid, "--json")
        job = json.loads(out)["jobs"][0] if code in (0, 3) else {"error": errors}
        if code in (0, 3) and holds(job) or time.monotonic() > end:
            return code, job
        time.sleep(0.2)


def wait_of(job, rank):
    return job["ranks"][rank]["waits"][0]


def deadlock(how, protocol, cycle, stuck, waits):
    def check(pid):
        code, job = until(pid, lambda one: one["deadlock"]["stuck"] == stuck)
        name = f"{how} over {protocol}"
        expect(f"{name}: stuck are {stuck}, in a circle {cycle}",
               code == 3 and sorted(job["deadlock"]["cycle"]) == cycle and job["deadlock"]["stuck"] == stuck, job)
        if code != 3:
            return
        for rank, wanted in waits.items():
            wait = wait_of(job, rank)
            expect(f"{name}: rank {rank} waits {wanted}", {k: wait[k] for k in wanted} == wanted and wait["seconds"] > 0, wait)
        code, out, _ = look(pid)
        expect(f"{name}: the text names it", code == 3 and f"DEADLOCK: {len(stuck)} ranks wait for each other" in out
               and f"rank {cycle[0]} (" in out, out)
    in_job(how, protocol, check)


WORLD = "MPI_COMM_WORLD"
for way in ("shm", "via", "tcp"):
    deadlock("receives", way, [0, 1], [0, 1, 2], {
        0: {"what": "receive", "peers": [1], "tag": 70, "communicator": WORLD, "transport": way, "one_is_enough": False},
        1: {"what": "receive", "peers": [0], "tag": 71}, 2: {"peers": [0], "tag": 72}})
deadlock("ring", "shm", [0, 1, 2], [0, 1, 2], {0: {"what": "send", "peers": [1], "tag": 5, "communicator": WORLD}, 2: {"peers": [0]}})
deadlock("barrier", "shm", [0, 1], [0, 1, 2], {0: {"what": "receive", "peers": [1], "tag": 9}, 1: {"what": "collective", "tag": None}})
deadlock("any", "tcp", [0, 1], [0, 1, 2], {0: {"what": "receive", "peers": [1, 2], "tag": -1, "one_is_enough": True,
                                                  "communicator": "the ring"}})
deadlock("finalize", "via", [0, 1], [0, 1, 2], {0: {"what": "probe", "peers": [1], "tag": 3}, 1: {"what": "finalize"}})


def none_while_one_computes(pid):
    code, job = until(pid, lambda one: any(r["waits"] for r in one["ranks"][1:]))
    expect("ranks that wait for one that computes are in no deadlock",
           code == 0 and job["deadlock"]["stuck"] == [] and wait_of(job, 1)["what"] == "collective" and not job["ranks"][0]["waits"], job)
    code, out, _ = look("all")
    # Jobs of other tests may be there, too, and stuck.
    own = [job for job in out.split("\n\n") if f" {pid} " in job]
    expect("all jobs are shown", code in (0, 3) and len(own) == 1 and "waits in" in own[0] and "DEADLOCK" not in own[0], out)


def none_while_a_thread_computes(pid):
    code, job = until(pid, lambda one: all(r["waits"] for r in one["ranks"]))
    expect("ranks that wait for each other are in no deadlock while a thread of one of them computes",
           code == 0 and job["deadlock"]["stuck"] == [] and wait_of(job, 0)["what"] == "receive", job)


in_job("computes", "shm", none_while_one_computes)
in_job("threads", "shm", none_while_a_thread_computes)
code, _, errors = look("1" if os.getuid() == 0 else str(os.getpid()))
expect("a process that is in no job is told", code == 1 and "in no MPI job" in errors, errors)
expect("a wrong process number is a wrong use", look("12x")[0] == 2 and look("0")[0] == 2)
sys.exit(faults != 0)
