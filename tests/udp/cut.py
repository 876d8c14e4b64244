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
from hosts import Failure, Skipped, UdpNamespaces, end, outcome, without_privileges  # noqa: E402
from slowness import slowness  # noqa: E402

TOO_SLOW = 4  # a program that waits so long for a processor may be silent for 650 ms without a cut
TOO_LONG = 0.4  # a cut that leaves less than 250 ms of the 650 ms in which both ends must hear of each other
TRIES = 10
A_PART = 1_000_000  # bytes
TOLD_WITHIN = 10.0  # 650 ms of silence, and what a busy machine adds


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
    for _ in range(TRIES):
        before = received(hosts)
        processes = load(hosts, vipperf, level, count)
        try:
            while processes[1].poll() is None and received(hosts) < before + A_PART:
                time.sleep(0.01)
        except BaseException:
            end(processes)
            raise
        if processes[1].poll() is None:
            return processes
        out, err = processes[1].communicate()
        end(processes)
        why = "%s: it ended before the cable was cut, exit status %d\n%s%s" % (
            level, processes[1].returncode, out[-2000:], err[-2000:])
        if slowness() <= TOO_SLOW:
            break
        print("once more, %s" % why, flush=True)
    raise Failure(why)


def try_short(hosts, cable, vipperf, level):
    """None, or why it says nothing that the connection has ended: no cut was as short as it was meant to be."""
    before = received(hosts)
    processes = load(hosts, vipperf, level, 200000)
    try:
        while processes[1].poll() is None and received(hosts) < before + A_PART:
            time.sleep(0.01)
        cuts, longest = 0, 0.0
        while processes[1].poll() is None and cuts < 5:
            longest = max(longest, cable.cut(0.2))
            cuts += 1
            time.sleep(0.5)
        for process in reversed(processes):
            out, err = process.communicate(timeout=120)
            if process.returncode != 0 and longest > TOO_LONG:
                return "a cut of 0.2 s lasted %.1f s" % longest
            if process.returncode != 0 and slowness() > TOO_SLOW:
                raise Skipped("the machine is too busy to tell a cut of 0.2 s from its own pauses")
            if process.returncode != 0:
                raise Failure("%s, short cuts, %.2f s at most: exit status %d\n%s%s" % (
                    level, longest, process.returncode, out[-2000:], err[-2000:]))
        if cuts == 0:
            raise Failure("it was over before the cable was cut")
    finally:
        end(processes)
    print("%-9s %d cuts of 0.2 s, every byte there" % (level, cuts), flush=True)
    return None


def short(hosts, cable, vipperf, level):
    for _ in range(TRIES):
        why = try_short(hosts, cable, vipperf, level)
        if why is None:
            return
        print("%-9s once more: %s" % (level, why), flush=True)
    raise Failure("%s: %d times %s" % (level, TRIES, why))


def long(hosts, cable, vipperf, level):
    processes = under_way(hosts, vipperf, level, 10_000_000)
    try:
        cable.tell("down")
        began = time.monotonic()
        for process in reversed(processes):
            out, err = process.communicate(timeout=60)
            if process.returncode == 0:
                raise Failure("%s: it ended well without a cable\n%s%s" % (level, out, err))
        took = time.monotonic() - began
        if took > TOLD_WITHIN and took > TOLD_WITHIN * slowness():
            raise Failure("%s: the ends heard of the cut after %.1f s" % (level, took))
    finally:
        end(processes)
        cable.tell("up")
    processes = load(hosts, vipperf, level, 1000)
    try:
        for process in reversed(processes):
            out, err = process.communicate(timeout=60)
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
