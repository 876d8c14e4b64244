#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The cable is cut under load. Restored at once, reliable levels lose nothing; cut for longer, both ends are told in their time, and
the next connection works as soon as the cable is there again.

    cut.py --build BUILD [--user UID]
"""
import argparse
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "acenic"))
from hosts import Failure, UdpNamespaces, end, outcome, without_privileges  # noqa: E402

from eventually import RunningTime, communicated, holds  # noqa: E402

A_PART = 1_000_000  # bytes
TOLD_WITHIN = 13.0  # seconds of running time: silence shows a cut after 10 s


class Cable:
    """The second host's end of the cable, switched by one process that is there all the time (cable.py)."""

    def __init__(self, hosts):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cable.py")
        self.process = hosts.start(1, sys.executable, "-B", script, "v0", stdin=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end([self.process])

    def tell(self, command):
        self.process.stdin.write("%s\n" % command)
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise Failure("cable.py ended at \"%s\": %s" % (command, self.process.communicate()[1]))
        return answer

    def cut(self, seconds):
        """How long the cable was cut at most."""
        return float(self.tell(seconds))


def received(hosts):
    """Bytes that have come to the second host."""
    shown = subprocess.run(["ip", "-n", hosts.names[1], "-j", "-s", "link", "show", "v0"], check=True, capture_output=True, text=True)
    return json.loads(shown.stdout)[0]["stats64"]["rx"]["bytes"]


def load(hosts, vipperf, level, count):
    return [hosts.start(1, vipperf, "-s", "-1", "-d", "udp0"),
            hosts.start(0, vipperf, "-d", "udp0", "-t", "send_bw", "-b", 4000, "-n", count, "-r", level, "--check", "-w", 10000, "hostb")]


def under_way(hosts, vipperf, level, count):
    """The load, once a part of it has come."""
    before = received(hosts)
    processes = load(hosts, vipperf, level, count)
    try:
        if not holds(lambda: processes[1].poll() is not None or received(hosts) >= before + A_PART,
                     [process.pid for process in processes], 60):
            raise Failure("%s: the load does not begin" % level)
        if processes[1].poll() is not None:
            out, err = processes[1].communicate()
            raise Failure("%s: it ended before the cable was cut, exit status %d\n%s%s" % (
                level, processes[1].returncode, out[-2000:], err[-2000:]))
    except BaseException:
        end(processes)
        raise
    return processes


def short(hosts, cable, vipperf, level):
    processes = under_way(hosts, vipperf, level, 200000)
    try:
        cuts, longest = 0, 0.0
        while processes[1].poll() is None and cuts < 5:
            longest = max(longest, cable.cut(0.2))
            cuts += 1
            time.sleep(0.5)  # sleeps: the connection goes on between two cuts
        for process in reversed(processes):
            out, err = communicated(process, 120)
            if process.returncode != 0:
                raise Failure("%s, cuts of %.2f s at most: exit status %d\n%s%s" % (
                    level, longest, process.returncode, out[-2000:], err[-2000:]))
    finally:
        end(processes)
    print("%-9s %d cuts of 0.2 s, every byte there" % (level, cuts), flush=True)


def long(hosts, cable, vipperf, level):
    processes = under_way(hosts, vipperf, level, 10_000_000)
    try:
        cable.tell("down")
        time_used = RunningTime()
        if not holds(lambda: all(process.poll() is not None for process in processes), [process.pid for process in processes], TOLD_WITHIN):
            raise Failure("%s: the ends did not end within %.1f s of the cut" % (level, TOLD_WITHIN))
        took = time_used.wall()
        for process in reversed(processes):
            out, err = process.communicate()
            if process.returncode == 0:
                raise Failure("%s: it ended well without a cable\n%s%s" % (level, out, err))
    finally:
        end(processes)
        cable.tell("up")
    processes = load(hosts, vipperf, level, 1000)
    try:
        for process in reversed(processes):
            out, err = communicated(process, 60)
            if process.returncode != 0:
                raise Failure("%s, after the cut: exit status %d\n%s%s" % (level, process.returncode, out[-2000:], err[-2000:]))
    finally:
        end(processes)
    print("%-9s a cut is told to both ends within %.1f s, the next connection works" % (level, took), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build tree")
    parser.add_argument("--user", type=int, help="all of it in a user namespace of that user")
    options = parser.parse_args()
    if options.user is not None:
        return without_privileges(options.user)
    vipperf = os.path.join(os.path.abspath(options.build), "bin", "vipperf")

    def run_all():
        with UdpNamespaces(2) as hosts, Cable(hosts) as cable:
            for level in ("delivery", "reception"):
                short(hosts, cable, vipperf, level)
                long(hosts, cable, vipperf, level)

    return outcome(run_all)


if __name__ == "__main__":
    sys.exit(main())
