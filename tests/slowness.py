# SPDX-License-Identifier: BSD-2-Clause
"""What the machine gives: how much slower than on a quiet one a thread gets on just now, and a clock and limits
that know."""
import os
import statistics
import subprocess
import time


def one_probe(work=0.002):
    """Wall time over processor time of a little work, begun after a short sleep, as waiting programs begin theirs."""
    time.sleep(0.001)
    wall, busy = time.monotonic(), time.thread_time()
    while time.thread_time() - busy < work:
        pass
    return max(1.0, (time.monotonic() - wall) / (time.thread_time() - busy))


def slowness(probes=15):
    """1.0 on a quiet machine; beside as many busy programs as there are processors about 2. A large minority of slow
    probes counts: it is by these that a deadline is missed."""
    found = sorted(one_probe() for _ in range(probes))
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return max(1.0, statistics.mean(found[probes // 2:]), min(waiting, 2 * found[-1]))


def within_fair_limit(wait, limit):
    """wait(timeout=...) of a process, wait() or communicate(), for `limit` seconds; where these are over, for as many
    times as long as the machine is slow just now."""
    try:
        return wait(timeout=limit)
    except subprocess.TimeoutExpired:
        return wait(timeout=limit * (slowness() - 1))


def run(command, limit, **options):
    """End code, output and errors of a program that has `limit` seconds, as above."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        try:
            out, errors = within_fair_limit(process.communicate, limit)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return process.returncode, out, errors


class FairClock:
    """Seconds that pass more slowly while the machine gives less. `slow` is what was measured last."""

    def __init__(self, slow):
        self.slow = slow
        self.seconds = 0.0
        self._last = time.monotonic()

    def now(self):
        wall = time.monotonic()
        self.seconds += (wall - self._last) / max(1.0, self.slow())
        self._last = wall
        return self.seconds
