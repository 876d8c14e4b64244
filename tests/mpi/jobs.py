# SPDX-License-Identifier: BSD-2-Clause
"""Jobs that run beside each other: each has to end with 0 within its limit."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import Late, finished  # noqa: E402

failures = 0


def ends_well(name, jobs, limit):
    """Waits up to `limit` seconds of running time for each; what does not end well is printed and counted in `failures`."""
    global failures
    for job in jobs:
        try:
            code = finished(job, limit)
        except Late:
            code = "no end"
            job.terminate()
        if code != 0:
            failures += 1
            print(f"FAIL {name}: {code}", flush=True)
