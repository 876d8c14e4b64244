# SPDX-License-Identifier: BSD-2-Clause
"""Jobs that run beside each other: each has to end with 0 within its limit."""
import subprocess

failures = 0


def ends_well(name, jobs, limit):
    """Waits up to `limit` seconds for each; what does not end well is printed and counted in `failures`."""
    global failures
    for job in jobs:
        try:
            code = job.wait(limit)
        except subprocess.TimeoutExpired:
            code = "no end"
            job.terminate()
        if code != 0:
            failures += 1
            print(f"FAIL {name}: {code}", flush=True)
