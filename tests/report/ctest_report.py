#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Adds up one run of ctest out of the file of its option --output-junit.
usage: ctest_report.py REPORT [ENDS TITLE]

Prints `PASSED FAILED SKIPPED`, then the name of each failed test on a line of its own. Only a test that says itself why it cannot run here
(SKIP_RETURN_CODE, SKIP_REGULAR_EXPRESSION) or that is disabled counts as skipped: one that could not be started has failed. The last
lines that each failed test wrote are appended to the file ENDS, under its name after TITLE."""

import sys
import xml.etree.ElementTree

LINES = 40


def judgement(case):
    if case.get("status") == "run":
        return "passed"
    skipped = case.find("skipped")
    if case.get("status") == "disabled" or (skipped is not None and skipped.get("message", "").startswith("SKIP_")):
        return "skipped"
    return "failed"


def end_of(case):
    written = (case.findtext("system-out") or "").rstrip().splitlines()
    left_out = len(written) - LINES
    return ([f"[{left_out} lines before]"] if left_out > 0 else []) + written[-LINES:]


def main():
    report, ends, title = (sys.argv[1:] + ["", ""])[:3]
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failed = []
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        counts[judgement(case)] += 1
        if judgement(case) == "failed":
            failed.append(case)
    print(*counts.values())
    for case in failed:
        print(case.get("name"))
    if ends:
        with open(ends, "a", encoding="utf-8", errors="replace") as file:
            for case in failed:
                file.write("\n".join([f"-- {title}: {case.get('name')} ({float(case.get('time')):.0f} s)", *end_of(case), ""]))


if __name__ == "__main__":
    main()
