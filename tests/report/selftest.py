#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs ctest on one test of each outcome, and shows that ctest_report.py counts and names them, and keeps the ends of the failed ones.
usage: selftest.py CTEST"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = r"""
add_test(good "/bin/sh" "-c" "echo well")
add_test(bad "/bin/sh" "-c" "seq 100; printf 'x\\001y\\033[1m<&>\\n'; exit 3")
add_test(skips "/bin/sh" "-c" "echo SKIPPED: no; exit 77")
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)
add_test(says "/bin/sh" "-c" "echo SKIPPED: no")
set_tests_properties(says PROPERTIES SKIP_REGULAR_EXPRESSION SKIPPED)
add_test(disabled "/bin/true")
set_tests_properties(disabled PROPERTIES DISABLED ON)
add_test(absent "/nowhere/program")
add_test(late "/bin/sh" "-c" "echo begun; exec sleep 20")
set_tests_properties(late PROPERTIES TIMEOUT 1)
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
            file.write(TESTS)
        report, ends = os.path.join(folder, "report.xml"), os.path.join(folder, "ends")
        subprocess.run([sys.argv[1], "--output-junit", report], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        said = subprocess.run([sys.executable, os.path.join(HERE, "ctest_report.py"), report, ends, "release"], stdout=subprocess.PIPE,
                              text=True, check=True).stdout.split("\n")
        with open(ends, encoding="utf-8") as file:
            kept = file.read()
    looked_at = {
        "the counts": said[0] == "1 3 3",
        "the names": said[1:] == ["bad", "absent", "late", ""],
        "one end for each": kept.count("-- release: ") == 3 and "good" not in kept and "SKIPPED" not in kept,
        "the last 40 lines and no more": "[61 lines before]\n62\n" in kept and "\n61\n" not in kept and "<&>" in kept,
        "what was written before the deadline": "late (1 s)\nbegun\n" in kept,
        "a program that is not there": "/nowhere/program" in kept,
    }
    for what, good in looked_at.items():
        print("ok     " if good else "FAILED ", what)
    if not all(looked_at.values()):
        print("\n".join(said), kept, sep="\n")
    return 0 if all(looked_at.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
