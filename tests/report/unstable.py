#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs tests of ctest in rounds where the machine gives them little time, and says which failed how often.
usage: unstable.py --build BUILD [--ctest CTEST] [--rounds N] [--minutes M] [--way busy|half|pinned]... [NAME...]

NAME is a test or a shell pattern of tests; without one, all tests run but those of the labels in NOT_UNASKED and those that read the
results of other tests (DEPENDS). In each round each test runs alone, with its fixtures, once in each way: beside busy loops (two for
each processor), at half a processor (a cgroup with a quota), and pinned to one processor. ctest's deadlines hold as they are: a test
that reaches its deadline is counted as `Timeout`. A test that skips itself in one way is left out of that way from then on.
After each test the processes that it left behind are ended, so that no run meets the agent of the run before.
Ends with 0 when no test failed, 1 when one did, 2 for wrong arguments, 77 when no test could be run in any way, and 130 when it was
interrupted; the table of all that had run is printed then, too."""

import argparse
import contextlib
import ctypes
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import ctest_cases
import repeated

NOT_UNASKED = {"arrows", "header", "mpich", "stress", "obligations"}
BUSY_LOOPS = 2  # for each processor
QUOTA, PERIOD = 50000, 100000  # microseconds of processor time in so many microseconds
LEAVING = 2.0  # seconds that a process left behind has between SIGTERM and SIGKILL

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """Why tests cannot be run in one way on this machine."""


class Way:
    """A way of running tests: begin() and end() surround the tests of one round, in_child() prepares the process that becomes ctest."""

    def begin(self):
        pass

    def in_child(self):
        pass

    def own(self):
        """Processes that this way has started, which are no test's."""
        return set()

    def end(self):
        pass

    def close(self):
        pass


class Busy(Way):
    name = "beside busy loops"

    def __init__(self):
        self.loops = []

    def begin(self):
        parent = os.getpid()

        def in_loop():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        for _ in range(BUSY_LOOPS * len(os.sched_getaffinity(0))):
            self.loops.append(subprocess.Popen([sys.executable, "-ISc", "while True: pass"], stdin=subprocess.DEVNULL,
                                               stdout=subprocess.DEVNULL, preexec_fn=in_loop))

    def own(self):
        return {loop.pid for loop in self.loops}

    def end(self):
        for loop in self.loops:
            loop.kill()
        for loop in self.loops:
            loop.wait()
        self.loops = []

    def close(self):
        self.end()


class Pinned(Way):
    name = "pinned"

    def in_child(self):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def cpu_hierarchy():
    """(mount point, folder of this process's cgroup, version) of the hierarchy with the controller `cpu`: the hierarchy of version 1
    that has it, else the hierarchy of version 2."""
    paths = {}
    for line in read("/proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        paths[1 if "cpu" in controllers.split(",") else 2 if number == "0" else 0] = path
    for version in (1, 2):
        if version not in paths:
            continue
        for line in read("/proc/self/mountinfo").splitlines():
            fields, kind = (half.split(" ") for half in line.split(" - ", 1))
            if (kind[0], version) == ("cgroup", 1) and "cpu" in kind[2].split(",") or (kind[0], version) == ("cgroup2", 2):
                root, mount = fields[3], fields[4]
                below = os.path.relpath(paths[version], root)
                return mount, mount if below == "." or below.startswith("..") else os.path.join(mount, below), version
    raise Unavailable("no cgroup hierarchy with `cpu` is mounted")


class Half(Way):
    """A cgroup with a quota, below the cgroup of this process or, where the kernel refuses it there, below one of its parents. A child
    process waits until this process has ended, by a signal, too, moves the remaining processes out of the cgroup and removes it."""
    name = "at half a processor"

    def __init__(self):
        if not os.path.exists("/proc/self/cgroup"):
            raise Unavailable("the kernel has no cgroups")
        mount, home, self.version = cpu_hierarchy()
        self.home, self.folder, self.enabled_in = home, None, None
        reasons, parent = [], home
        while self.folder is None:
            try:
                self._make(parent)
            except OSError as error:
                reasons.append(f"{parent}: {error.strerror}")
                self._remove()
                if parent == mount:
                    raise Unavailable(f"no cgroup of version {self.version} with a quota: {'; '.join(reasons)}") from None
                parent = os.path.dirname(parent)
        reading, self.writing = os.pipe()
        self.keeper = os.fork()
        if self.keeper == 0:
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.close(self.writing)
            quiet = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(quiet, number)
            os.read(reading, 1)
            self._remove()
            os._exit(0)
        os.close(reading)

    def _make(self, parent):
        """Makes the cgroup, and moves a child into it: below a cgroup with processes, version 2 refuses only the move."""
        if self.version == 2 and "cpu" not in read(os.path.join(parent, "cgroup.subtree_control")).split():
            write(os.path.join(parent, "cgroup.subtree_control"), "+cpu")
            self.enabled_in = parent
        folder = os.path.join(parent, f"viaduct-unstable-{os.getpid()}")
        os.mkdir(folder)
        self.folder = folder
        if self.version == 2:
            write(os.path.join(folder, "cpu.max"), f"{QUOTA} {PERIOD}")
        else:
            write(os.path.join(folder, "cpu.cfs_period_us"), str(PERIOD))
            write(os.path.join(folder, "cpu.cfs_quota_us"), str(QUOTA))
        child = os.fork()
        if child == 0:
            code = 0
            try:
                self.in_child()
            except OSError as error:
                code = error.errno
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code != 0:
            raise OSError(code, os.strerror(code))

    def _remove(self):
        """A process may be forked, and an ended process be accounted for, while the processes are moved: hence the attempts."""
        for _ in range(250):
            if self.folder is None:
                break
            try:
                os.rmdir(self.folder)
                self.folder = None
            except FileNotFoundError:
                self.folder = None
            except OSError:
                with contextlib.suppress(OSError):
                    for pid in read(os.path.join(self.folder, "cgroup.procs")).split():
                        with contextlib.suppress(OSError):
                            write(os.path.join(self.home, "cgroup.procs"), pid)
                time.sleep(0.02)  # sleeps: between two attempts
        if self.enabled_in is not None:
            with contextlib.suppress(OSError):
                write(os.path.join(self.enabled_in, "cgroup.subtree_control"), "-cpu")
            self.enabled_in = None

    def in_child(self):
        write(os.path.join(self.folder, "cgroup.procs"), "0")

    def own(self):
        return {self.keeper}

    def close(self):
        os.close(self.writing)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.keeper, 0)


WAYS = {"busy": Busy, "half": Half, "pinned": Pinned}


def descendants(spared):
    """Children of this process, and their children, at any depth, without the spared ones."""
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            state, parent = read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:2]
            if state not in "ZX":
                children.setdefault(int(parent), []).append(int(pid))
    found, unseen = [], [os.getpid()]
    while unseen:
        fresh = [pid for pid in children.get(unseen.pop(), []) if pid not in spared]
        found += fresh
        unseen += fresh
    return found


def end_descendants(spared):
    begun = time.monotonic()
    while left := descendants(spared):
        passed = time.monotonic() - begun
        if passed > 2 * LEAVING:
            print(f"these processes do not end: {left}")
            break
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL if passed > LEAVING else signal.SIGTERM)
        time.sleep(0.02)  # sleeps: between two looks
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


class Outcome:
    """One run of a test: `result` is passed, failed or skipped; `kind` is ctest's word for it (Failed, Timeout, SEGFAULT, Not Run)."""

    def __init__(self, name, report, said):
        cases = {}
        with contextlib.suppress(OSError, xml.etree.ElementTree.ParseError):
            cases = {case.name: case for case in ctest_cases.read(report)}
        kinds = dict(re.findall(r"^\s+\d+ - (.+) \(([^()]*)\)$", said, re.MULTILINE))
        self.kind = kinds.get(name, "Failed")
        if name not in cases:
            self.result, self.kind, self.seconds, self.end = "failed", "No report", 0.0, said.splitlines()[-ctest_cases.LAST_LINES:]
            self.line = "ctest wrote no report of the test"
            return
        case = cases[name]
        self.result, self.seconds, self.line = case.judgement, case.seconds, case.reason()
        if self.result == "skipped":
            told = case.written.splitlines()
            self.line = next((line.strip() for line in told if "SKIP" in line.upper()), self.line)
        if self.kind == "Not Run":
            for fixture in cases.values():
                if fixture.judgement == "failed" and kinds.get(fixture.name) != "Not Run":
                    case, self.line = fixture, f"fixture {fixture.name}: {fixture.reason()}"
                    break
        self.end = case.last_lines()


def run_once(ctest, build, name, way, own, folder):
    report, said = os.path.join(folder, "report.xml"), os.path.join(folder, "said")
    with contextlib.suppress(FileNotFoundError):
        os.remove(report)
    try:
        with open(said, "w", encoding="utf-8") as file, subprocess.Popen(
                [*repeated.alone([ctest, "--test-dir", build], name), "--output-junit", report], stdin=subprocess.DEVNULL,
                stdout=file, stderr=file, preexec_fn=way.in_child) as running:
            # Processes whose parent ended become children of this process. Each is reaped at once: a test may wait for its end.
            pid = 0
            while pid != running.pid:
                pid, status = os.wait()
            running.returncode = os.waitstatus_to_exitcode(status)
    finally:
        end_descendants(own)
    return Outcome(name, report, read(said))


def listed(ctest, build):
    """Each test's name, with its properties."""
    done = subprocess.run([ctest, "--test-dir", build, "--show-only=json-v1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    try:
        tests = json.loads(done.stdout)["tests"]
    except (ValueError, KeyError):
        print(f"unstable: ctest lists no tests of {build}: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(2)
    return {test["name"]: {one["name"]: one["value"] for one in test.get("properties", [])} for test in tests}


def runs_unasked(properties):
    """ctest lists the fixtures of a test among its DEPENDS, too."""
    reads_results = "DEPENDS" in properties and "FIXTURES_REQUIRED" not in properties
    return not reads_results and not NOT_UNASKED.intersection(properties.get("LABELS", []))


def chosen(tests, wanted):
    """The tests that are to run, and the names that no test has."""
    if not wanted:
        return [name for name in tests if runs_unasked(tests[name])], []
    found = {name: [name] if name in tests else fnmatch.filter(tests, name) for name in wanted}
    names = {test for matched in found.values() for test in matched}
    return [name for name in tests if name in names], [name for name in wanted if not found[name]]


class Table:
    def __init__(self):
        self.runs, self.kinds, self.lines, self.skipped, self.told = {}, {}, {}, set(), set()

    def add(self, name, way, outcome):
        if outcome.result == "skipped":
            self.skipped.add((name, way))
            if (name, outcome.line) not in self.told:
                print(f"SKIPPED: {name} ({way}): {outcome.line}", flush=True)
            self.told.add((name, outcome.line))
            return
        self.runs[name, way] = self.runs.get((name, way), 0) + 1
        if outcome.result == "failed":
            self.kinds.setdefault((name, way), []).append(outcome.kind)
            print(f"{name}: {outcome.kind} after {outcome.seconds:.1f} s: {outcome.line}", flush=True)
            if name not in self.lines:
                kind = "" if outcome.kind == "Failed" else f"{outcome.kind} after {outcome.seconds:.0f} s: "
                self.lines[name] = kind + outcome.line
                print("".join(f"    {line}\n" for line in outcome.end), end="", flush=True)

    def show(self, ways):
        for name, line in self.lines.items():
            parts = []
            for way in ways:
                if (name, way) not in self.runs:
                    continue
                kinds = self.kinds.get((name, way), [])
                others = [f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds) - {"Failed"})]
                parts.append(f"{way} {len(kinds)} of {self.runs[name, way]}" + (f" ({', '.join(others)})" if others else ""))
            print(f"{name}: {', '.join(parts)}; first failure: {line}")
        tests = {name for name, _ in self.runs}
        print(f"{len(self.lines)} of {len(tests)} tests failed, {len({name for name, _ in self.skipped} - tests)} skipped", flush=True)


def number_above_zero(text):
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def arguments():
    parser = argparse.ArgumentParser(prog="./viaduct unstable", description="Run tests in rounds where the machine gives them little time.")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--ctest", default="ctest", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=number_above_zero, default=10, metavar="N", help="rounds (default 10)")
    parser.add_argument("--minutes", type=number_above_zero, metavar="M", help="begin no test when so many minutes are over")
    parser.add_argument("--way", action="append", choices=list(WAYS), help="only in this way (may be given again)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a test, or a shell pattern of tests")
    return parser.parse_intermixed_args()


def run_all(options, names, ways, table):
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, options.rounds + 1):
            for way in ways:
                left = [name for name in names if (name, way.name) not in table.skipped]
                if not left:
                    continue
                print(f"== {time.strftime('%H:%M:%S')} round {number} of {options.rounds}, {way.name}: {len(left)} tests", flush=True)
                way.begin()
                own = set().union(*(one.own() for one in ways))
                try:
                    for done, name in enumerate(left):
                        if options.minutes and time.monotonic() - begun > 60 * options.minutes:
                            print(f"ENDED: {options.minutes} minutes are over: round {number} of {options.rounds}, {way.name}: "
                                  f"{done} of {len(left)} tests")
                            return
                        table.add(name, way.name, run_once(options.ctest, options.build, name, way, own, folder))
                finally:
                    way.end()


def interrupt(_number, _frame):
    raise KeyboardInterrupt


def main():
    options = arguments()
    names, unknown = chosen(listed(options.ctest, options.build), options.names)
    if unknown or not names:
        print(f"unstable: no test is named {', '.join(unknown)}" if unknown else "unstable: there are no tests", file=sys.stderr)
        return 2
    for name in ("TEST_ROWS", "CTEST_PARALLEL_LEVEL"):
        os.environ.pop(name, None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    table, ways, code = Table(), [], None
    try:
        for one in dict.fromkeys(options.way or WAYS):
            try:
                ways.append(WAYS[one]())
            except Unavailable as why:
                print(f"SKIPPED: {WAYS[one].name}: {why}", flush=True)
        run_all(options, names, ways, table)
    except KeyboardInterrupt:
        print("INTERRUPTED", flush=True)
        code = 130
    finally:
        for way in ways:
            way.close()
    table.show([way.name for way in ways])
    if code is None:
        code = 1 if table.lines else 0 if table.runs else 77
    return code


if __name__ == "__main__":
    sys.exit(main())
