# SPDX-License-Identifier: BSD-2-Clause
"""The rows of a test that runs many of them. TEST_ROWS names the rows to run, one a line; the line FAILED ROWS names the failed rows,
and a run repeats these and not the whole test. rows.hpp is the same for programs."""

import json
import os
import sys


def chosen(names):
    """The rows of `names` that TEST_ROWS names, or all of them without TEST_ROWS. A name that is not in `names` ends the test. The
    programs that the test starts do not inherit the variable."""
    names = list(names)
    wanted = [row for row in os.environ.pop("TEST_ROWS", "").split("\n") if row]
    unknown = [row for row in wanted if row not in names]
    if unknown:
        sys.exit("TEST_ROWS: this test has no row " + ", no row ".join(unknown))
    return [name for name in names if name in wanted] if wanted else names


def report(failed):
    """Names the failed rows of a test that has run all the other rows to their end."""
    if failed:
        print("FAILED ROWS: " + json.dumps(list(failed)), flush=True)
