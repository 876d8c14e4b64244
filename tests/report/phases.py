#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Adds up the test phases of ./viaduct test in the file STATE.

    phases.py STATE run TITLE [--until SECONDS] -- ctest ARGUMENT...
                                       run ctest, and each failed test twice more, alone; the repetitions end at SECONDS since 1970
    phases.py STATE count PASSED SKIPPED
    phases.py STATE failed NAME LOG    one failed test, and the file with its output
    phases.py STATE unstable NAME LOG  one test that failed once and passed twice, and the output of its failure
    phases.py STATE left-out TEXT      a phase that was not begun, and why
    phases.py STATE began              print when the first of these commands was run on STATE: whole seconds since 1970
    phases.py STATE close              print the closing lines; ends with 1 when a test has failed or none has passed
"""

import sys

import ctest_cases
import repeated
import totals


def log_lines(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().rstrip().splitlines()[-ctest_cases.LAST_LINES:]


def run(state, title, *words):
    until = float(words[1]) if words[0] == "--until" else None
    repeated.run(state, title, list(words[words.index("--") + 1:]), until)


def main():
    state, what, arguments = totals.Totals(sys.argv[1]), sys.argv[2], sys.argv[3:]
    good = True
    if what == "run":
        run(state, *arguments)
    elif what == "count":
        state.passed += int(arguments[0])
        state.skipped += int(arguments[1])
    elif what == "failed":
        state.add_failed(arguments[0], log_lines(arguments[1]))
    elif what == "unstable":
        lines = log_lines(arguments[1])
        state.add_unstable(arguments[0], lines[-1] if lines else "no output", lines)
    elif what == "left-out":
        state.left_out.append(arguments[0])
    elif what == "began":
        print(state.began)
    elif what == "close":
        good = state.close()
    else:
        sys.exit(__doc__)
    state.save()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
