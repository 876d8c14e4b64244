# SPDX-License-Identifier: BSD-2-Clause
"""Jobs that run beside each other: each has to end with 0 within its limit."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from slowness import within_fair_limit  # noqa: E402

failures = 0


def ends_well(name, jobs, limit):
    """Waits up to `limit` seconds, within_fair_limit, for each; what does not end well is printed and counted in `failures`."""
    global failures
    for job in jobs:
        try:
            code = within_fair_limit(job.wait, limit)
        except subprocess.TimeoutExpired:
            code = "no end"
            job.terminate()
        if code != 0:
            failures += 1
            print(f"FAIL {name}: {code}", flush=True)
