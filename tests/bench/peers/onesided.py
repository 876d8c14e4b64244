#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""onesided.py BUILD [--rounds N]: one-sided operations of this MPI library, of Open MPI and of MPICH, in turns, between two processors;
one table of medians in nanoseconds, each an operation and its flush. Windows are allocated by the library, or created on the program's own memory."""
import argparse
import datetime
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 60
OURS = "this library"


def run(command, environment=None):
    """What a command has said, and why it failed or None."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    except subprocess.TimeoutExpired:
        return "", f"no end within {SECONDS} s"
    if done.returncode == 0:
        return done.stdout, None
    said = [line for line in done.stderr.splitlines() if line.strip(" -")]
    return done.stdout, f"exit {done.returncode}: {' | '.join(said)[-200:]}"


def contenders(build, folder, cpus):
    """(name, command, environment) of those that are here, and the names of those that are not."""
    binding = {"openmpi": ["--bind-to", "core", "--cpu-set", cpus], "mpich": ["-bind-to", f"user:{cpus}"]}
    # By itself Open MPI takes osc/rdma even where memory is shared; without it osc/sm there, osc/pt2pt elsewhere.
    choices = {"openmpi": (("Open MPI", ()), ("Open MPI sm", ("--mca", "osc", "^rdma"))), "mpich": (("MPICH", ()),)}
    as_root = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    library = os.path.abspath(os.path.join(build, "lib/cmpi/lib"))
    if not os.path.exists(os.path.join(library, "libmpich.so.12")):
        sys.exit(f"{library} has no libmpich.so.12: build the target cmpi first")
    found, missing = [], []
    for flavour, names in choices.items():
        compiler, launcher = f"mpicc.{flavour}", f"mpirun.{flavour}"
        if not shutil.which(compiler) or not shutil.which(launcher):
            missing.append(names[0][0])
            continue
        program = os.path.join(folder, f"onesided_{flavour}")
        _, why = run([compiler, "-O2", "-w", "-o", program, os.path.join(HERE, "onesided_peer.c")])
        if why is not None:
            sys.exit(f"{compiler}: {why}")
        for name, options in names:
            found.append((name, [launcher, "-np", "2", *binding[flavour], *options, program], as_root))
        if flavour == "mpich":  # the same binary with our library in front
            found.insert(0, (OURS, found[-1][1], {**as_root, "LD_LIBRARY_PATH": library}))
    return found, missing


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    allowed = sorted(os.sched_getaffinity(0))[:2]
    if len(allowed) < 2:
        sys.exit("only one processor is allowed here: there is no way between two to measure")
    samples, failed = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        found, missing = contenders(options.build, folder, ",".join(map(str, allowed)))
        for _ in range(options.rounds):
            for name, command, environment in found:
                said, why = run(command, environment)
                for line in said.splitlines():
                    window, operation, ns = line.split()
                    samples.setdefault((window, operation), {}).setdefault(name, []).append(float(ns))
                if why is not None:
                    failed[name] = why
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown processor")
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    print(f"{model}, Linux {platform.release()}, processors {allowed[0]} and {allowed[1]}, {options.rounds} rounds, {date}")
    print(f"{'window':<11}{'operation':<18}" + "".join(f"{name:>14}" for name, _, _ in found))
    for (window, operation), by_name in samples.items():
        cells = (f"{statistics.median(by_name[name]):>14.1f}" if by_name.get(name) else f"{'':>14}" for name, _, _ in found)
        print(f"{window:<11}{operation:<18}" + "".join(cells))
    for name in missing:
        print(f"left out: {name} is not installed")
    for name, why in failed.items():
        print(f"failed: {name}: {why}")
    sys.exit(1 if OURS in failed or not any(name == OURS for name, _, _ in found) else 0)


if __name__ == "__main__":
    main()
