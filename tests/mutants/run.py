#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Changes the product, one place at a time, and shows that a test notices (`./viaduct mutants`).

Each mutant of the tables (table.py) is made in a copy of the tree and of its build folder: an overlay over
both at their own place, seen only in a mount namespace of its own, so that only what depends on the changed
file is compiled again and nothing is left behind.  First the named tests must pass there, then all of them must fail:
    killed          each did, or did not end in its time
    SURVIVED        one passed all the same
    DOES NOT APPLY  the text is not in the file, or not once: the table is to be mended
    DOES NOT BUILD  the compiler refuses it
    NO BASE         the tests fail without the change
TEST_ROWS may name mutants as well, one a line.
The exit code is 0 when all were killed, 77 when this machine gives no overlays."""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import table  # noqa: E402
from report import rows  # noqa: E402

SKIPPED = 77
# A test that does not end is a test that fails: nothing here lasts a quarter of this.
TEST_SECONDS = 120
BUILD_SECONDS = 900
KILLED, SURVIVED, NOT_APPLIED, NOT_BUILT, NO_BASE = "killed", "SURVIVED", "DOES NOT APPLY", "DOES NOT BUILD", "NO BASE"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="these mutants, or those of an obligation (C40)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"), help="the build folder, up to date")
    parser.add_argument("--slice", metavar="N/M", help="every M-th of them, beginning with the N-th")
    parser.add_argument("--quick", action="store_true", help="those that the tests run")
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument("--check", action="store_true", help="only look whether the table fits the tree")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    return parser.parse_args()


def chosen(arguments):
    mutants = table.MUTANTS
    if arguments.quick:
        mutants = [m for m in mutants if m.quick]
    if arguments.names:
        known = {name for m in mutants for name in (m.name, *m.rows)}
        for name in arguments.names:
            if name not in known:
                sys.exit(f"mutants: there is no mutant or obligation {name} (--list)")
        mutants = [m for m in mutants if {m.name, *m.rows} & set(arguments.names)]
    if arguments.slice:
        number, of = (int(part) for part in arguments.slice.split("/"))
        if not 1 <= number <= of:
            sys.exit(f"mutants: --slice {arguments.slice}: from 1/{of} to {of}/{of}")
        mutants = mutants[number - 1 :: of]
    names = rows.chosen(m.name for m in mutants)
    return [m for m in mutants if m.name in names]


# ---- inside of the namespace: one mutant ----


def run(command, cwd, seconds, log, environment=None):
    """The exit code, None when it did not end in time."""
    log.write(f"$ {' '.join(command)}\n")
    log.flush()
    process = subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.write(f"not done after {seconds} s\n")
        return None


def failed_tests(tests, build, mutant, log):
    """Those that fail; a test that says it cannot run here ends all."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("VIADUCT_", "CMPI_"))}
    own = uuid.uuid4().hex  # process numbers are those of a namespace, names of agents are not
    failed = []
    for number, test in enumerate(tests):
        environment["VIADUCT_AGENT"] = f"@viaduct-mutant-{mutant}-{own}-{number}"
        command, _ = table.how_to_run(test, build)
        code = run(command, build, TEST_SECONDS, log, environment)
        if code == SKIPPED:
            raise RuntimeError(f"{test} cannot run here")
        if code != 0:
            failed.append(test)
    return failed


def remake(targets, build, log):
    return run(["cmake", "--build", build, "--target", *targets], ROOT, BUILD_SECONDS, log) == 0


def judge(mutant, build, log):
    targets = sorted(({table.how_to_run(test, build)[1] for test in mutant.tests} - {None}) | set(mutant.targets))
    if not remake(targets, build, log):
        return NO_BASE, "it does not build without the change"
    base = failed_tests(mutant.tests, build, mutant.name, log)
    if base:
        return NO_BASE, base[0]
    try:
        changed = table.changed_text(ROOT, mutant)
    except ValueError as fault:
        return NOT_APPLIED, str(fault)
    for path, text in changed.items():
        with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
            file.write(text)
    if not remake(targets, build, log):
        return NOT_BUILT, ""
    failed = failed_tests(mutant.tests, build, mutant.name, log)
    alive = [test for test in mutant.tests if test not in failed]
    return (SURVIVED, ", ".join(alive)) if alive else (KILLED, "")


def mount_overlay(scratch):
    """Whatever is written below ROOT is written to memory; outside it is as it was."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", scratch], check=True)
    for folder in ("upper", "work"):
        os.mkdir(os.path.join(scratch, folder))
    options = f"lowerdir={ROOT},upperdir={scratch}/upper,workdir={scratch}/work"
    if os.environ.get("VIADUCT_MUTANTS_OWN_USER"):
        options += ",userxattr"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, ROOT], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], check=True)
    os.chdir(ROOT)


def inside(arguments):
    name, scratch = arguments.inside.split("@")
    try:
        mount_overlay(scratch)
    except (subprocess.CalledProcessError, OSError) as fault:
        print(f"no overlay: {fault}")
        return SKIPPED
    if name == "":
        return 0
    mutant = next(m for m in table.MUTANTS if m.name == name)
    with open(os.path.join(scratch, "log"), "w+", encoding="utf-8", errors="replace") as log:
        try:
            result, why = judge(mutant, arguments.build, log)
        except RuntimeError as fault:
            print(f"skipped\t{fault}")
            return SKIPPED
        print(f"{result}\t{why}")
        if result in (NOT_BUILT, NO_BASE):
            log.flush()
            log.seek(0)
            sys.stderr.write("".join(log.readlines()[-40:]))
    return 0 if result == KILLED else 1


# ---- outside ----


def in_namespace(arguments, name, scratch):
    own_user = os.geteuid() != 0
    command = ["unshare", *(["--map-root-user"] if own_user else []), "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    command += [sys.executable, os.path.abspath(__file__), "--build", arguments.build, "--inside", f"{name}@{scratch}"]
    environment = dict(os.environ)
    if own_user:
        environment["VIADUCT_MUTANTS_OWN_USER"] = "1"
    return subprocess.run(command, cwd="/", env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")


def main():
    arguments = parse()
    if arguments.inside is not None:
        return inside(arguments)
    mutants = chosen(arguments)
    if arguments.list:
        for m in mutants:
            print(f"{m.name:34} {','.join(m.rows) or '-':12} {m.what}")
        return 0
    arguments.build = os.path.abspath(arguments.build)
    if not arguments.check and os.path.commonpath([arguments.build, ROOT]) != ROOT:
        print(f"SKIPPED: {arguments.build} is not below {ROOT}: it would be changed")
        return SKIPPED
    faults = list(table.faults(ROOT))
    if faults or arguments.check:
        print("\n".join(faults + [f"{len(table.MUTANTS)} mutants, {len(faults)} faults in the table"]))
        return 1 if faults else 0
    scratch = tempfile.mkdtemp(prefix="viaduct-mutants-")
    counts = {}
    failed = []
    try:
        probe = in_namespace(arguments, "", scratch)
        if probe.returncode != 0:
            print(f"SKIPPED: this machine gives no namespace with an overlay: {(probe.stdout + probe.stderr).strip()}")
            return SKIPPED
        for m in mutants:
            start = time.monotonic()
            ran = in_namespace(arguments, m.name, scratch)
            result, _, why = ran.stdout.strip().partition("\t")
            if not re.fullmatch(r"[A-Za-z ]+", result):
                result, why = "no answer", ran.stdout + ran.stderr
            counts[result] = counts.get(result, 0) + 1
            if result not in (KILLED, "skipped"):
                failed.append(m.name)
            print(f"{result:14} {m.name:34} {time.monotonic() - start:5.0f} s  {why}", flush=True)
            if ran.stderr:
                print(ran.stderr, flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())))
    rows.report(failed)
    if failed:
        return 1
    return 0 if counts.get(KILLED) else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
