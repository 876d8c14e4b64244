#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs small MPI programs under the launchers that are installed, over each protocol: the same answers from all of them,
the right ends, threads, and programs compiled by another MPI.
Usage: jobs_test.py LIBRARY_FOLDER PROGRAM_FOLDER SOURCE_FOLDER PROTOCOL..."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402
import temporary  # noqa: E402

library, programs, sources = sys.argv[1:4]
protocols = sys.argv[4:]
faults = []
os.environ["LD_LIBRARY_PATH"] = library + ":" + os.environ.get("LD_LIBRARY_PATH", "")
# Some of these programs leave messages and requests behind on purpose, and libpmix keeps what it likes.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
HYDRA = "mpiexec.mpich"
# Four credits, small pools and buffers: everything has to wait for everything.
TIGHT = {"CMPI_PREPOST_DEPTH": "4", "CMPI_VBUF_SPARES": "16", "CMPI_SHM_RING": "8192", "CMPI_TCP_BUFFER": "8192"}
OPENMPI = "mpirun.openmpi"


def run(command, protocol=None, limit=60, settings=()):
    environment = dict(os.environ, **dict(settings))
    environment.pop("CMPI_PROTOCOL", None)
    if protocol:
        environment["CMPI_PROTOCOL"] = protocol
    try:
        done = eventually.run(command, limit, env=environment)
    except eventually.Late as late:
        return 124, late.out, f"{late.errors}{late}"
    return done.returncode, done.stdout, done.stderr


def expect(name, condition, seen=""):
    print(("ok      " if condition else "FAILED  ") + name, flush=True)
    if not condition:
        print(seen)
        faults.append(name)


def digest(name, command, protocol=None, settings=()):
    """Of a program that found no errors; the test fails when it found some."""
    code, out, errors = run(command, protocol, settings=settings)
    found = re.fullmatch(r"No Errors, digest ([0-9a-f]{16})\n", out)
    expect(name, code == 0 and found and errors == "", (code, out, errors))
    return found.group(1) if found else None


def program(name, *arguments):
    return [os.path.join(programs, name), *arguments]


def hydra(ranks, command):
    return [HYDRA, "-n", str(ranks), *command]


def openmpi(ranks, command):
    return [OPENMPI, "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *command]


def killed(name, launcher, protocol, own_time=0, ending="killed"):
    """Rank 1 dies while the others wait for it: the job ends within two seconds of running time, with an error and a sentence. The
    launcher itself may take own_time seconds from then on."""
    environment = dict(os.environ, CMPI_PROTOCOL=protocol)
    with tempfile.NamedTemporaryFile("w+") as said:
        job = subprocess.Popen(launcher(3, program("endings", ending)), env=environment, stdout=said, stderr=said)
        try:
            eventually.eventually("rank 1 kills itself", lambda: "killed at" in eventually.text_of(said.name) or job.poll() is not None,
                                  [job.pid], limit=60)
            code = eventually.finished(job, 2 + own_time)
            late = ""
        except eventually.Late as passed:
            job.kill()
            code, late = job.wait(), str(passed)
        text = eventually.text_of(said.name)
    expect(f"{name}, {protocol}, {ending}: a killed rank ends the job within two seconds, with a message",
           code != 0 and not late and "killed at" in text and ("is lost" in text or "signal 9" in text.lower()), (code, text, late))


digest("alone: messages to oneself", program("messages"))
digest("alone: a child of fork may wait for long", program("endings", "waiting-child"))

if shutil.which(HYDRA):
    for ranks in (2, 4):
        seen = {digest(f"hydra, {ranks} ranks, {p}: messages", hydra(ranks, program("messages")), p) for p in protocols}
        expect(f"hydra, {ranks} ranks: the same answers over {', '.join(protocols)} and by choice",
               len(seen | {digest(f"hydra, {ranks} ranks, by choice: messages", hydra(ranks, program("messages")))}) == 1)
    seen = {digest(f"hydra, 8 ranks, {p}, hardly any buffers: messages", hydra(8, program("messages")), p, TIGHT) for p in protocols}
    expect(f"hydra, 8 ranks: the same answers over {', '.join(protocols)} with hardly any buffers", len(seen) == 1)
    if "via" in protocols:
        code, out, errors = run(hydra(3, program("messages")), "via", settings={"VIADUCT_WHY": "1"})
        expect("via: its polls of empty queues are no failures", code == 0 and "No Errors" in out and "queue is empty" not in errors, errors)
    for protocol in protocols:
        digest(f"hydra, 3 ranks, {protocol}: threads", hydra(3, program("threads")), protocol)
        digest(f"hydra, 8 ranks of 8 threads, {protocol}", hydra(8, program("crowd")), protocol)
        for ranks in (2, 4):
            digest(f"hydra, {ranks} ranks, {protocol}: idle threads", hydra(ranks, program("crowd", "idle")), protocol)
        killed("hydra", hydra, protocol)
        for ending in ("epoch", "epoch-messages"):
            killed("hydra", hydra, protocol, ending=ending)
        digest(f"{protocol}: a rank that finalizes late is waited for", hydra(3, program("endings", "late")), protocol)
        digest(f"{protocol}: messages without a receive do not hold the end up", hydra(3, program("endings", "unread")), protocol)
    for protocol, left in zip(protocols, (0, 7, 256)):
        for _ in range(2):
            code, _, errors = run(hydra(3, program("endings", "exit", str(left))), protocol)
            expect(f"{protocol}: exit({left}) without MPI_Finalize ends the job with 9", code == 9 and f"exit({left})" in errors, (code, errors))
    for protocol in protocols:
        # A process waits two seconds for the others. The job counts for nothing where one of them came later than that.
        # Three that came within a second were not late.
        for _ in range(10):
            code, out, errors = run(hydra(3, program("endings", "forgotten")), protocol)
            ends = [float(at) for at in re.findall(r" at (\d+\.\d+)\n", out)]
            if code == 0 or not ends or time.monotonic() - min(ends) < 2 or len(ends) == 3 and max(ends) - min(ends) < 1:
                break
        expect(f"{protocol}: a job whose processes all end with 0 and without MPI_Finalize ends with 0, and none is cut short",
               (code, errors) == (0, "") and sorted(re.findall(r"rank (\d) at ", out)) == ["0", "1", "2"],
               (code, out, errors))
    code, _, errors = run(hydra(3, ["-disable-auto-cleanup", *program("endings", "exit", "0")]), settings={"CMPI_ROBUST": "1"})
    expect("exit(0) in a job that survives is the loss of a process, and does not end the job",
           code != 0 and "exit(0)" not in errors and "MPI_Barrier" in errors, (code, errors))
    for protocol in protocols[:1]:
        digest(f"{protocol}: a child of fork may end", hydra(3, program("endings", "child")), protocol)
        code, _, errors = run(hydra(3, program("endings", "at-exit")), protocol)
        expect(f"{protocol}: MPI_Finalize may be called while the process ends", code == 0 and errors == "", (code, errors))
    code, _, errors = run(hydra(3, program("endings", "abort")))
    expect("MPI_Abort ends the job with its code, and names the rank", code == 7 and "rank 1 of 3" in errors, (code, errors))
    code, _, errors = run(hydra(2, program("endings", "fatal")))
    expect("an error without a handler ends the job and names call and error", code != 0 and "MPI_Send" in errors, (code, errors))
    code, _, errors = run(hydra(2, program("endings", "twice")))
    expect("MPI_Init twice is an error", code != 0 and "MPI_Init" in errors, (code, errors))
    code, _, errors = run(hydra(2, program("messages")), "paper")
    expect("an unknown protocol is refused by name", code != 0 and "CMPI_PROTOCOL=paper" in errors, (code, errors))
    code, out, errors = run(hydra(2, program("messages")), settings={"CMPI_EAGER_LIMIT": "abc"})
    expect("a value that is not allowed fails MPI_Init with the variable, the value and what is allowed",
           code != 0 and "CMPI_EAGER_LIMIT=abc is not a number of bytes from 0 to 1048576" in errors, (code, errors))
else:
    print(f"SKIPPED: no {HYDRA} (package mpich) on this machine")

if shutil.which(OPENMPI):
    seen = {digest(f"mpirun, 4 ranks, {p}: messages", openmpi(4, program("messages")), p) for p in protocols}
    expect(f"mpirun, 4 ranks: the same answers over {', '.join(protocols)} and by choice",
           len(seen | {digest("mpirun, 4 ranks, by choice: messages", openmpi(4, program("messages")))}) == 1)
    for protocol in protocols:
        killed("mpirun", openmpi, protocol, 1)  # it waits a second for its daemons before it ends
else:
    print(f"SKIPPED: no {OPENMPI} (package openmpi-bin) on this machine")

# Compiled with another MPI's header and library, run with ours: the point of the ABI.
with tempfile.TemporaryDirectory(dir=temporary.for_programs()) as folder:
    for compiler, source in (("mpicc.mpich", "messages.c"), ("mpifort.mpich", "ring.f90"), ("mpifort.mpich", "window.f90")):
        if os.environ.get("VIADUCT_SANITIZED"):
            print(f"SKIPPED: {compiler}: its programs do not carry the run-time that a sanitized library needs")
            continue
        if not shutil.which(compiler) or not shutil.which(HYDRA):
            print(f"SKIPPED: no {compiler} (package libmpich-dev) on this machine")
            continue
        binary = os.path.join(folder, source.replace(".", "_"))
        done = subprocess.run([compiler, "-w", "-O1", "-I", sources, os.path.join(sources, source), "-o", binary],
                              capture_output=True, text=True)
        if done.returncode != 0 and "gfortran" in done.stderr:
            print(f"SKIPPED: {compiler} finds no Fortran compiler (package gfortran)")
            continue
        expect(f"{compiler} compiles {source}", done.returncode == 0, done.stderr)
        if done.returncode == 0:
            digest(f"{compiler} {source}: runs unchanged", hydra(3, [binary]))

sys.exit(1 if faults else 0)
