#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py --build DIR [--kind KIND] [--row PATTERN] [--rounds N] [--jobs N] [--list]: the rows of rows/, several at a time;
of these the ones that TEST_ROWS names, one a line. Exits with 77 when every row was skipped."""
import argparse
import fnmatch
import json
import os
import re
import shutil
import signal
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import one
import rows
from report.rows import chosen as chosen_rows
from report.rows import report as report_failed


class Tools:
    """The programs that rows are made of."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        own = os.path.join(self.build, "tests/environment")
        self.actions = os.path.join(own, "environment_actions")
        self.within = os.path.join(own, "environment_within")
        self.job = os.path.join(own, "environment_job")
        self.vipkad = os.path.join(self.build, "sbin/vipkad")
        self.vipinfo = os.path.join(self.build, "bin/vipinfo")
        self.vipping = os.path.join(self.build, "bin/vipping")
        self.mpiexec = shutil.which("mpiexec.hydra") or shutil.which("mpiexec.mpich")
        self._rows = os.path.join(own, f"rows.{os.getpid()}")
        self._name = f"@viaduct-environment-{os.getpid()}"

    def folder(self, row):
        return os.path.join(self._rows, f"{rows.ALL.index(row)}")

    def agent_name(self, row):
        return f"{self._name}-{rows.ALL.index(row)}"

    def clean(self):
        shutil.rmtree(self._rows, ignore_errors=True)


def start(row, tools):
    """(pid, pipe) of a process that runs the row."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            answer = one.run(row, tools)
        except Exception:
            answer = "BAD", "the test itself failed: " + traceback.format_exc()[-800:]
        os.write(writing, json.dumps(answer).encode())
    finally:
        os._exit(0)


def run_round(chosen, tools, jobs, report):
    waiting, running = list(chosen), {}
    while waiting or running:
        while waiting and len(running) < jobs:
            row = waiting.pop(0)
            pid, pipe = start(row, tools)
            running[pid] = row, pipe, time.monotonic()
        pid, _ = os.wait()
        if pid not in running:
            continue
        row, pipe, began = running.pop(pid)
        said = os.read(pipe, 65536)
        os.close(pipe)
        kind, why = json.loads(said) if said else ("BAD", "the row's process ended without an answer")
        report(row, kind, why, time.monotonic() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--kind", default="*")
    parser.add_argument("--row", default="*", help="a pattern of the shell, or a regular expression in /slashes/")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=max(4, min(6, 2 * (os.cpu_count() or 1))))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--quiet", action="store_true", help="only rows that are not good")
    options = parser.parse_args()

    def named(row):
        if options.row.startswith("/"):
            return re.search(options.row.strip("/"), row.name)
        return fnmatch.fnmatch(row.name, options.row) or fnmatch.fnmatch(row.name, f"*{options.row}*")

    chosen = [row for row in rows.ALL if fnmatch.fnmatch(row.kind, options.kind) and named(row)]
    if options.list:
        for row in chosen:
            print(row.name)
        print(f"{len(chosen)} rows")
        return 0
    if not chosen:
        print("no row is called so")
        return 2
    names = chosen_rows(row.name for row in chosen)
    chosen = [row for row in chosen if row.name in names]
    tools = Tools(options.build)
    counts = {"GOOD": 0, "BAD": 0, "SKIPPED": 0}
    bad = {}

    def report(row, kind, why, seconds):
        counts[kind] += 1
        if kind == "BAD":
            bad[row.name] = bad.get(row.name, 0) + 1
        if kind != "GOOD" or not options.quiet:
            print(f"{kind:7} {seconds:5.1f} s  {row.name}{': ' + why if why else ''}", flush=True)

    began = time.monotonic()
    try:
        for number in range(options.rounds):
            if options.rounds > 1:
                print(f"-- round {number + 1}", flush=True)
            run_round(chosen, tools, options.jobs, report)
    finally:
        tools.clean()
    print(f"{len(chosen)} rows, {options.rounds} rounds in {time.monotonic() - began:.0f} s: {counts['GOOD']} good, "
          f"{counts['BAD']} bad, {counts['SKIPPED']} skipped")
    for name, times in sorted(bad.items()):
        print(f"BAD {times} of {options.rounds}: {name}")
    report_failed(sorted(bad))
    if bad:
        return 1
    return 77 if counts["GOOD"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
