#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Shows which rows a test runs for a value of TEST_ROWS, and how it names the failed ones.  Usage: selftest_rows.py"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# A test of three rows, which all fail; the programs that it starts have no TEST_ROWS.
TEST = """
import os, sys
sys.path.insert(0, sys.argv[1])
from report import rows
ran = list(rows.chosen(name for name in ("one", 'the "second"', "drei \\u00df")))
print(len(ran), "ran,", "TEST_ROWS" in os.environ)
rows.report(ran)
"""
ALL = r'FAILED ROWS: ["one", "the \"second\"", "drei \u00df"]'
LOOKED_AT = [
    ("all rows without TEST_ROWS", None, 0, ["3 ran, False", ALL]),
    ("all rows when TEST_ROWS is empty", "", 0, ["3 ran, False", ALL]),
    ("the row that is named", "one", 0, ["1 ran, False", 'FAILED ROWS: ["one"]']),
    ("rows with quotes and other letters", 'drei \u00df\nthe "second"\n', 0,
     ["2 ran, False", r'FAILED ROWS: ["the \"second\"", "drei \u00df"]']),
    ("no row for a name that no row has", "one\ntwo", 1, []),
    ("no row for a part of a name", "on", 1, []),
]


def main():
    wrong = 0
    for what, value, code, lines in LOOKED_AT:
        environment = {name: text for name, text in os.environ.items() if name != "TEST_ROWS"}
        if value is not None:
            environment["TEST_ROWS"] = value
        done = subprocess.run([sys.executable, "-B", "-c", TEST, os.path.dirname(HERE)], env=environment, capture_output=True, text=True,
                              encoding="utf-8", check=False)
        good = done.returncode == code and done.stdout.splitlines() == lines and (code == 0 or "has no row" in done.stderr)
        print("ok     " if good else "FAILED ", what)
        if not good:
            wrong += 1
            print(done)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
