#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The pages of docs/measurements: each table stands under its machine, commit, date and command; and what
tests/bench/measurements.py makes of small outputs of the benchmarks.  Usage: measurements.py ROOT"""

import glob
import importlib.util
import json
import os
import re
import sys

sys.dont_write_bytecode = True
from verdict import end, read  # noqa: E402

sys.dont_write_bytecode = True

ROWS = """VIPL between two processes, /dev/via_eth0
Viaduct 0.1.0, A Processor, Linux 6.1, processors 0 and 1, 2026-01-02 03:04 UTC

near processors                      unit       median       limit    ratio   samples
ring ping-pong 8 B                   ns          40.0                              3
VIPL send/receive 8 B                ns          60.0        40.0    1.50x         2  disturbed
"""
PEERS = """A Processor, Linux 6.1, processors 0 and 1, 2 rounds, 2026-01-02 03:04 UTC

far processors, half a round trip, ns
                                           8 B               4 KiB
limit: put                       40.0
VIPL send/receive                60.0    1.50x      300.0

left out: UCX is not installed
"""
PORTS = """acenic over memif, MTU 9000; A Processor, 2 processors, Linux 6.1; 2026-01-02

Medians of 3 rounds, near processors

| what | value | to bare frames |
| --- | ---: | ---: |
| bare frames, 64 B | 0.20 µs |  |
"""
ONESIDED = ("A Processor, Linux 6.1, processors 0 and 1, 5 rounds, 2026-01-02 03:04 UTC\n"
            + f"{'window':<11}{'operation':<18}{'Viaduct':>14}{'MPICH':>14}\n"
            + f"{'allocated':<11}{'put-8':<18}{'13.6':>14}{'':>14}\n")
VIPPERF = json.dumps({"tool": "vipperf", "machine": "A Processor", "date": "2026-01-02 03:04 UTC", "nic": "nic0",
                      "reliability": "reliable delivery",
                      "tests": [{"test": "send_lat", "completion": "queue", "rows": [{"bytes": 8, "p50_us": 0.06}]}]})
CASES = [
    ("default-nic", ROWS, ["| Machine | A Processor, Linux 6.1, processors 0 and 1 |", "| Date | 2026-01-02 03:04 UTC |",
                           "| ring ping-pong 8 B | ns | 40.0 |  |  | 3 |",
                           "| VIPL send/receive 8 B | ns | 60.0 | 40.0 | 1.50x | 2 (disturbed) |"]),
    ("peers", PEERS, ["far processors, half a round trip, ns", "|  | 8 B | 4 KiB |",
                      "| VIPL send/receive | 60.0 (1.50x) | 300.0 |", "left out: UCX is not installed"]),
    ("ports", PORTS, ["## acenic over memif, MTU 9000", "| bare frames, 64 B | 0.20 µs |  |"]),
    ("onesided", ONESIDED, ["| window | operation | Viaduct | MPICH |", "| allocated | put-8 | 13.6 |  |"]),
    ("vipperf", VIPPERF, ["send_lat, queue", "| 8 | 0.06 |"]),
]
FIELDS = ("Machine", "Commit", "Date", "Command")


def faults_of(text):
    """What a page lacks: the four fields, with something in them, of each section that has figures."""
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        for field in FIELDS:
            if not re.search(rf"^\| {field} \| \S.* \|$", section, re.M):
                yield f"'{section.splitlines()[0]}' does not name its {field.lower()}"


def main():
    root = os.path.abspath(sys.argv[1])
    wrong = []
    pages = sorted(glob.glob(os.path.join(root, "docs/measurements/*.md")))
    for path in pages:
        text = read(path)
        wrong += [f"{os.path.relpath(path, root)}: {fault}" for fault in faults_of(text)]
        if "\n## " not in text:
            wrong.append(f"{os.path.relpath(path, root)}: has no section with figures")
    if not pages:
        wrong.append("docs/measurements has no page")

    place = os.path.join(root, "tests/bench/measurements.py")
    spec = importlib.util.spec_from_file_location("bench_measurements", place)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    for subject, said, expected in CASES:
        made = bench.page(subject, [("the command", said, "0123abcd")])
        wrong += [f"{subject}: '{line}' is missing in\n{made}" for line in expected if line not in made.splitlines()]
        wrong += [f"{subject}: {fault}" for fault in faults_of(made)]
        if not list(faults_of(made.replace("| Commit | 0123abcd |", ""))):
            wrong.append(f"{subject}: a page without its commit is taken for whole")
    for said in ("", "nothing of this kind\n", ROWS.split("\n\n")[0]):
        try:
            bench.page("default-nic", [("the command", said, "0123abcd")])
            wrong.append(f"a page was made of {said!r}")
        except ValueError:
            pass
    end(wrong, f"measurements: {len(pages)} pages, {len(CASES)} kinds of output")


if __name__ == "__main__":
    main()
