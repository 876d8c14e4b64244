#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Deadlocks of jobs, found by cmpiinfo --job.  Usage: deadlock_test.py CMPIINFO PROGRAM

Each job is started under mpiexec and never ends by itself; cmpiinfo names the circle of waits, with what each rank of it
waits for. A job in which a rank computes has none, nor has one in which a message lies for a rank that is stopped."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402
from report import rows  # noqa: E402

tool, program = sys.argv[1:3]
mpiexec = shutil.which("mpiexec.hydra") or shutil.which("mpiexec.mpich")
if mpiexec is None:
    print("SKIPPED: no mpiexec.hydra (package mpich) on this machine")
    sys.exit(77)
faults = 0
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../utils/schemas/cmpiinfo-job.schema.json"),
          encoding="utf-8") as file:
    SCHEMA = json.load(file)
try:
    from jsonschema import Draft202012Validator
    fits = Draft202012Validator(SCHEMA)
except ImportError:
    print("no look at the schema: the Python module jsonschema (package python3-jsonschema) is not there")
    fits = None
RANKS = 3
LIMIT = 30


def expect(name, condition, seen=""):
    global faults
    print(("ok      " if condition else "FAILED  ") + name, flush=True)
    if not condition:
        faults += 1
        print(seen, flush=True)


def expect_fit(seen):
    wrong = [f"{error.json_path}: {error.message}" for error in fits.iter_errors(seen)]
    if wrong:
        expect("what is shown fits its schema", False, wrong)


def look(*arguments):
    done = eventually.run([tool, "--job", *arguments], limit=60)
    return done.returncode, done.stdout, done.stderr


def in_job(how, protocol, check, *arguments, told=1, **environment):
    """Runs the job, calls check() with what it tells first, the process number of rank 0 before all, ends the job."""
    job = subprocess.Popen([mpiexec, "-n", str(RANKS), program, how, *arguments], stdout=subprocess.PIPE, text=True,
                           start_new_session=True, env={**os.environ, "CMPI_PROTOCOL": protocol, **environment})
    try:
        check(*[job.stdout.readline().strip() for _ in range(told)])
    finally:
        os.killpg(job.pid, signal.SIGTERM)
        job.wait()
        job.stdout.close()


def until(pid, holds):
    """The job as JSON when `holds`, or the last one before the limit; and the end code."""
    code, job = None, {}

    def is_so():
        nonlocal code, job
        code, out, errors = look(pid, "--json")
        seen = json.loads(out) if code in (0, 3) else None
        if seen and fits is not None:
            expect_fit(seen)
        job = seen["jobs"][0] if seen else {"error": errors}
        return code in (0, 3) and holds(job)
    eventually.holds(is_so, [int(pid), os.getpid()], LIMIT)
    return code, job


def wait_of(job, rank):
    return job["ranks"][rank]["waits"][0]


def text_until(pid, words):
    """The same as text, with these words."""
    code, out = None, ""

    def is_so():
        nonlocal code, out
        code, out, _ = look(pid)
        return words in out
    eventually.holds(is_so, [int(pid), os.getpid()], LIMIT)
    return code, out


def deadlock(how, protocol, cycle, stuck, waits):
    def is_final(job):
        # Before that a rank may still be in a wait of the start.
        return job["deadlock"]["stuck"] == stuck and sorted(job["deadlock"]["cycle"]) == cycle and all(
            all(wait_of(job, rank)[k] == value for k, value in wanted.items()) for rank, wanted in waits.items())

    def check(pid):
        code, job = until(pid, is_final)
        name = f"{how} over {protocol}"
        expect(f"{name}: stuck are {stuck}, in a circle {cycle}",
               code == 3 and sorted(job["deadlock"]["cycle"]) == cycle and job["deadlock"]["stuck"] == stuck, job)
        if code != 3:
            return
        for rank, wanted in waits.items():
            wait = wait_of(job, rank)
            expect(f"{name}: rank {rank} waits {wanted}", {k: wait[k] for k in wanted} == wanted and wait["seconds"] > 0, wait)
        words = f"DEADLOCK: {len(stuck)} ranks wait for each other"
        code, out = text_until(pid, words)
        expect(f"{name}: the text names it", code == 3 and words in out and f"rank {cycle[0]} (" in out, out)
    in_job(how, protocol, check)


WORLD = "MPI_COMM_WORLD"
# (program's case, protocol, ranks of the circle, stuck ranks, waits)
DEADLOCKS = [("receives", way, [0, 1], [0, 1, 2], {
    0: {"what": "receive", "peers": [1], "tag": 70, "communicator": WORLD, "transport": way, "one_is_enough": False},
    1: {"what": "receive", "peers": [0], "tag": 71}, 2: {"peers": [0], "tag": 72}}) for way in ("shm", "via", "tcp")]
DEADLOCKS += [
    ("ring", "shm", [0, 1, 2], [0, 1, 2], {0: {"what": "send", "peers": [1], "tag": 5, "communicator": WORLD}, 2: {"peers": [0]}}),
    ("barrier", "shm", [0, 1], [0, 1, 2], {0: {"what": "receive", "peers": [1], "tag": 9}, 1: {"what": "collective", "tag": None}}),
    ("any", "tcp", [0, 1], [0, 1, 2], {0: {"what": "receive", "peers": [1, 2], "tag": -1, "one_is_enough": True,
                                           "communicator": "the ring"}}),
    ("finalize", "via", [0, 1], [0, 1, 2], {0: {"what": "probe", "peers": [1], "tag": 3}, 1: {"what": "finalize"}})]
# Of a word in shared memory nothing tells who will change it.
DEADLOCKS += [(how, "shm", [0, 1], [0, 1, 2], {0: {"what": "receive", "peers": [1], "tag": 9},
                                               1: {"what": "window", "peers": [0, 2], "one_is_enough": True}})
              for how in ("fence", "lock")]


def all_wait(what, ranks):
    """Whether these ranks of a job wait so. Before that a rank may still be in a wait of the start, or of another call."""
    return lambda job: all(job["ranks"][rank]["waits"] and wait_of(job, rank)["what"] == what for rank in ranks)


def none_while_one_computes(pid):
    code, job = until(pid, all_wait("collective", range(1, RANKS)))
    expect("ranks that wait for one that computes are in no deadlock",
           code == 0 and job["deadlock"]["stuck"] == [] and wait_of(job, 1)["what"] == "collective" and not job["ranks"][0]["waits"], job)
    code, out, _ = look("all")
    # Jobs of other tests may be there, too, and stuck.
    own = [job for job in out.split("\n\n") if f" {pid} " in job]
    expect("all jobs are shown", code in (0, 3) and len(own) == 1 and "waits in" in own[0] and "DEADLOCK" not in own[0], out)


def none_while_a_thread_computes(pid):
    code, job = until(pid, all_wait("receive", range(RANKS)))
    expect("ranks that wait for each other are in no deadlock while a thread of one of them computes",
           code == 0 and job["deadlock"]["stuck"] == [] and wait_of(job, 0)["what"] == "receive", job)


def none_while_one_is_stopped(sign):
    """To all that can be seen of their waits, rank 0 and rank 1 wait for each other."""
    def tags(job, rank):
        return [wait["tag"] for wait in job["ranks"][rank]["waits"]]

    def check(pid, stopped):
        until(pid, lambda one: tags(one, 1) == [81])
        os.kill(int(stopped), signal.SIGSTOP)
        try:
            send_and_look(pid, stopped)
        finally:
            os.kill(int(stopped), signal.SIGCONT)

    def send_and_look(pid, stopped):
        eventually.eventually("rank 1 is stopped", lambda: ") T " in eventually.text_of(f"/proc/{stopped}/stat"), [int(stopped)])
        with open(sign, "w", encoding="utf-8"):
            pass
        code, job = until(pid, lambda one: tags(one, 0) == [82])
        expect("a rank that is stopped before it takes what has come for it is in no deadlock",
               code == 0 and job["deadlock"]["stuck"] == [] and tags(job, 0) == [82] and tags(job, 1) == [81], job)
    return check


def none_while_one_is_late_at_a_fence(pid):
    code, job = until(pid, all_wait("window", range(1, RANKS)))
    expect("ranks in a fence that wait for one that computes are in no deadlock",
           code == 0 and job["deadlock"]["stuck"] == [] and wait_of(job, 1)["what"] == "window" and not job["ranks"][0]["waits"], job)


def none_while_the_holder_computes(pid):
    code, job = until(pid, all_wait("window", (1, 2)))
    expect("ranks that wait for a lock whose holder computes are in no deadlock",
           code == 0 and job["deadlock"]["stuck"] == [] and wait_of(job, 1)["peers"] == [0, 2] and wait_of(job, 1)["one_is_enough"]
           and wait_of(job, 2)["peers"] == [0, 1] and not job["ranks"][0]["waits"], job)


def none_while_a_target_computes(pid):
    code, job = until(pid, all_wait("window", (1, 2)))
    expect("ranks that flush to one that computes wait for it",
           code == 0 and job["deadlock"]["stuck"] == [] and all(wait_of(job, rank)["peers"] == [0] for rank in (1, 2)), job)


ASKS = [{"what": what, "asks": True, "communicator": WORLD, "peers": peers, "tag": tag, "one_is_enough": any_}
        for what, peers, tag, any_ in (("receive", [1], 90, False), ("probe", [2], 89, False), ("receive", [0, 1], 92, True))]


def shown_while_they_ask(pid):
    def all_ask(job):
        return all(job["ranks"][rank]["waits"] and wait_of(job, rank).items() >= wanted.items() for rank, wanted in enumerate(ASKS))
    code, job = until(pid, all_ask)
    expect("what programs ask for is shown, and is no deadlock",
           code == 0 and job["deadlock"]["stuck"] == [] and all_ask(job), job)
    _, out = text_until(pid, "receive, asks")
    expect("the text says that they ask", "receive, asks" in out and "probe, asks" in out, out)


def nothing_after_asking(pid):
    code, job = until(pid, lambda one: all_wait("collective", (1, 2))(one) and not one["ranks"][0]["waits"])
    expect("a program that has asked and computes waits for nothing", code == 0 and not job["ranks"][0]["waits"], job)


def none_while_stopped_over(way):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, way)
        in_job("stopped", way, none_while_one_is_stopped(file), file, told=2)


def wrong_numbers():
    code, _, errors = look("1" if os.getuid() == 0 else str(os.getpid()))
    expect("a process that is in no job is told", code == 1 and "in no MPI job" in errors, errors)
    expect("a wrong process number is a wrong use", look("12x")[0] == 2 and look("0")[0] == 2)


ROWS = {f"{job[0]} over {job[1]}": lambda job=job: deadlock(*job) for job in DEADLOCKS}
ROWS["computes over shm"] = lambda: in_job("computes", "shm", none_while_one_computes)
ROWS["fence-late over shm"] = lambda: in_job("fence-late", "shm", none_while_one_is_late_at_a_fence)
BY_MESSAGES = {"CMPI_WINDOW_ACCESS": "messages"}
for by in ({}, BY_MESSAGES):
    ROWS[f"lock-held over tcp{' by messages' if by else ''}"] = lambda by=by: in_job(
        "lock-held", "tcp", none_while_the_holder_computes, **by)
ROWS["flush-late over tcp by messages"] = lambda: in_job("flush-late", "tcp", none_while_a_target_computes, **BY_MESSAGES)
ROWS["asks over shm"] = lambda: in_job("asks", "shm", shown_while_they_ask)
ROWS["asked over shm"] = lambda: in_job("asked", "shm", nothing_after_asking)
ROWS["stopped over shm"] = lambda: none_while_stopped_over("shm")
ROWS["stopped over tcp"] = lambda: none_while_stopped_over("tcp")
ROWS["threads over shm"] = lambda: in_job("threads", "shm", none_while_a_thread_computes)
ROWS["wrong numbers"] = wrong_numbers
failed = []
for row in rows.chosen(ROWS):
    earlier = faults
    ROWS[row]()
    if faults > earlier:
        failed.append(row)
rows.report(failed)
sys.exit(faults != 0)
