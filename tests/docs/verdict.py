# SPDX-License-Identifier: BSD-2-Clause
"""What the checks of documents have in common: the text of a file, how faults are told, and that faults are noticed."""

import os
import re
import sys


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def end(found, summary="", enough=True):
    """Tells the faults. The exit status is 1 where there are any, or where too little was looked at."""
    for fault in found:
        print(fault)
    if summary:
        print(summary)
    sys.exit(0 if not found and enough else 1)


def unnoticed(page, changes, faults):
    """Faults of the check: of each change of the page, (right, wrong), `faults` of the new page has to find something."""
    before = len(list(faults(page)))
    for right, wrong in changes:
        if right not in page or len(list(faults(page.replace(right, wrong, 1)))) <= before:
            yield f"{wrong} instead of {right} is not noticed"


def end_judged(reports, what):
    """The end of a check of checks. `reports`: (case, what it reports, an expression that its only fault has, or None)."""
    total = wrong = 0
    for case, report, expected in reports:
        total += 1
        good = not report if expected is None else len(report) == 1 and re.search(expected, report[0])
        if not good:
            print(f"{case}: expected {expected or 'nothing'}, got:\n  " + "\n  ".join(report[:5]))
            wrong += 1
    print(f"{total} {what}, {wrong} misjudged")
    sys.exit(1 if wrong else 0)
