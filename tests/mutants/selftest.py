#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Shows that the check of the tables (run.py --check) finds each kind of fault, and that run.py makes the mutants that TEST_ROWS names.
Usage: selftest.py"""

import argparse
import dataclasses
import os
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import run  # noqa: E402
import table  # noqa: E402

# One that is good, and what is wrong with it then.
GOOD = next(m for m in table.MUTANTS if m.name == "sequence-unchecked")
BAD = [
    (dict(old="no such text"), "has its text 0 times"),
    (dict(old="return false;"), "times"),
    (dict(file="mpi-adi/gone.cpp"), "No such file"),
    (dict(also=((GOOD.file, "no such text either", ""),)), "has its text 0 times"),
    (dict(tests=("adi_module_test via gone",)), "no case of that module"),
    (dict(tests=("unit Gone.Never",)), "no case in tests/unit"),
    (dict(tests=("ctest adi.via",)), "no target of its own"),
    (dict(rows=("C99",)), "there is no row C99"),
    (dict(rows=("C67",)), "C67 names none of the tests that kill it"),
    (dict(name="any-source"), "is there twice"),
]


def main():
    good = list(table.faults(ROOT))
    wrong = 0
    if good:
        print("the tables have faults:\n  " + "\n  ".join(good))
        wrong += 1
    os.environ["TEST_ROWS"] = GOOD.name
    if run.chosen(argparse.Namespace(quick=False, names=[], slice=None)) != [GOOD]:
        print(f"TEST_ROWS={GOOD.name} is to choose that mutant")
        wrong += 1
    whole = table.MUTANTS
    for change, expected in BAD:
        table.MUTANTS = [m for m in whole if m is not GOOD] + [dataclasses.replace(GOOD, **change)]
        found = list(table.faults(ROOT))
        if not any(expected in fault for fault in found):
            print(f"expected {expected}, got:\n  " + "\n  ".join(found))
            wrong += 1
    # What is written is the file with that text in the other's place, and nothing else.
    with tempfile.TemporaryDirectory() as tree:
        with open(os.path.join(tree, "a"), "w", encoding="utf-8") as file:
            file.write("one two three")
        one = dataclasses.replace(GOOD, file="a", old="two", new="2", also=(("a", "three", "3"),))
        if table.changed_text(tree, one) != {"a": "one 2 3"}:
            print("both changes of one file are to be made")
            wrong += 1
    print(f"{len(BAD) + 3} looked at, {wrong} misjudged")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
