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


def output_of(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def contenders(build, folder, cpus):
    """(name, command, environment) of those that are here, and the names of those that are not."""
    binding = {"openmpi": ["--bind-to", "core", "--cpu-set", cpus], "mpich": ["-bind-to", f"user:{cpus}"]}
    as_root = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    found, missing = [], []
    for name, flavour in (("MPICH", "mpich"), ("Open MPI", "openmpi")):
        compiler, launcher = f"mpicc.{flavour}", f"mpirun.{flavour}"
        if not shutil.which(compiler) or not shutil.which(launcher):
            missing.append(name)
            continue
        program = os.path.join(folder, f"onesided_{flavour}")
        output_of([compiler, "-O2", "-w", "-o", program, os.path.join(HERE, "onesided_peer.c")])
        command = [launcher, "-np", "2", *binding[flavour], program]
        found.append((name, command, as_root))
        if flavour == "mpich":  # the same binary with our library in front
            library = os.path.join(build, "lib/cmpi/lib")
            if not os.path.exists(library):
                library = next((os.path.join(root, "cmpi/lib") for root, folders, _ in os.walk(build) if "cmpi" in folders
                                and os.path.exists(os.path.join(root, "cmpi/lib"))), library)
            found.insert(0, ("this library", command, {**as_root, "LD_LIBRARY_PATH": library}))
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
                try:
                    for line in output_of(command, env=environment).splitlines():
                        window, operation, ns = line.split()
                        samples.setdefault((window, operation), {}).setdefault(name, []).append(float(ns))
                except (RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
                    failed[name] = str(error)
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
    sys.exit(1 if "this library" in failed else 0)


if __name__ == "__main__":
    main()
