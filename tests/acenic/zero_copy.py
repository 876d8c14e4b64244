#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Payload that ports send from where it lies: messages and writes with every byte checked, once so and once copied, by the engines'
counters; through a ring that is smaller than the window, so that zero-copy frames have to wait, while their memory is taken back, too;
with a stalled peer, so that zero-copy frames are sure to wait when the VI or the registration ends; and to the port's own
address, where frames wait in any case.

    zero_copy.py --build BUILD
"""
import argparse
import os
import re
import signal
import subprocess
import sys

from conformance import suite
from hosts import Failure, Memif, Namespaces, end, outcome

from eventually import communicated

WARM_UP = 200  # messages of taken_back.cpp before those that are measured
WORK = (("send_bw", 30000, 1500), ("write_bw", 65536, 1000))


class SmallRing(Memif):
    """A memif link of 32 frames."""

    def port(self, end):
        return super().port(end) + ",rsize=5"


def counters(hosts, program, test, size, count):
    """Of the end that sends, behind a good run."""
    processes = [hosts.start(1, program, "-s", "-1", "-d", "acenic0"),
                 hosts.start(0, program, "-d", "acenic0", "-t", test, "-b", size, "-n", count, "--check", "-w", 1000, "hostb")]
    try:
        says = [communicated(process, 60) for process in reversed(processes)]
    finally:
        end(processes)
    for process, (out, err) in zip(reversed(processes), says):
        if process.returncode != 0:
            raise Failure("%s: exit status %d\n%s%s" % (test, process.returncode, out[-2000:], err[-3000:]))
    found = {}
    for _, err in says:
        for name in ("zero-copy", "bad check", "copied after all"):
            found[name] = found.get(name, 0) + sum(int(n) for n in re.findall(r"\b%s (\d+)" % name, err))
    return found


def compare(hosts, program):
    hosts.settings["VIADUCT_LOG"] = "info"
    for zero_copy in ("on", "off") if not isinstance(hosts, SmallRing) else ("on",):
        hosts.settings["VIADUCT_ACENIC_ZERO_COPY"] = zero_copy
        for test, size, count in WORK if zero_copy == "on" else WORK[:1]:
            got = counters(hosts, program, test, size, count)
            print("%-10s zero_copy %-3s %-8s %d x %d: %s" % (type(hosts).__name__, zero_copy, test, count, size, got), flush=True)
            # Three of four frames of 30,000 bytes are full, and so are most of 65,536.
            enough = got["zero-copy"] >= 3 * count if zero_copy == "on" else got["zero-copy"] == 0
            if not enough or got["bad check"] != 0:
                raise Failure("%s with zero_copy %s: %s" % (test, zero_copy, got))
            if zero_copy == "on" and isinstance(hosts, SmallRing) and got["copied after all"] == 0:
                raise Failure("no frame had to wait for the small ring")


def expect(process, word):
    """The next line it says."""
    line = process.stdout.readline().split()
    if line[:1] != [word]:
        raise Failure("%s: no \"%s\", but %s %s" % (os.path.basename(process.args[0]), word, line, process.communicate()[1][-3000:]))
    return line[1:]


def peer_stands_still(hosts, program, what):
    """The receiver is stopped while zero-copy frames wait for the ring; then `what` ends, and the memory with it.
    True if any frame had to wait."""
    receiver = hosts.start(1, program, "receive")
    sender = hosts.start(0, program, "send", "hostb", what, stdin=subprocess.PIPE)

    def go_on():
        sender.stdin.write("\n")
        sender.stdin.flush()

    try:
        expect(receiver, "open")
        expect(sender, "warm")
        receiver.send_signal(signal.SIGSTOP)
        go_on()
        expect(sender, "unmapped")
        receiver.send_signal(signal.SIGCONT)
        go_on()
        expect(sender, "done")
        first, second = int(expect(receiver, "received")[0]), int(expect(receiver, "received")[0])
        says = [communicated(process, 20) for process in (sender, receiver)]
    finally:
        receiver.send_signal(signal.SIGCONT)
        end([sender, receiver])
    waited = sum(int(n) for n in re.findall(r"\bcopied after all (\d+)", says[0][1]))
    print("%-10s peer stands still, %s ends: %d messages before, %d frames had to wait" % (
        type(hosts).__name__, what, first - WARM_UP, waited), flush=True)
    # What was in the ring and before it arrives, whole: the receiver has looked at every byte.
    if (sender.returncode, receiver.returncode) != (0, 0) or second != 1:
        raise Failure("peer stands still: %d and %d messages, %d frames waited\n%s" % (first, second, waited, says))
    return waited != 0 and first > WARM_UP


def to_ourselves(hosts, program):
    """Both ends on one port: such frames lie there until the receiver takes them, so their payload must not be the program's memory."""
    hosts.settings["VIADUCT_LOG"] = "info"
    process = hosts.start(0, program, "--nic", "acenic0", "--hold", "--gtest_brief=1",
                          "--gtest_filter=EachLevel/Messages.LargestBothWays*/ReliableDelivery")
    try:
        out, err = communicated(process, 60)
    finally:
        end([process])
    got = {name: sum(int(n) for n in re.findall(r"\b%s (\d+)" % name, err)) for name in ("zero-copy", "foreign")}
    print("%-10s to ourselves: %s" % (type(hosts).__name__, got), flush=True)
    # A frame whose payload was still elsewhere would count as foreign, and come a second time as a copy.
    if process.returncode != 0 or got["zero-copy"] < 2000 or got["foreign"] != 0:
        raise Failure("to ourselves: exit status %d, %s\n%s%s" % (process.returncode, got, out[-2000:], err[-3000:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build tree")
    options = parser.parse_args()
    program = os.path.join(os.path.abspath(options.build), "bin", "vipperf")
    conformance = os.path.join(os.path.abspath(options.build), "tests", "conformance", "viaduct_conformance")

    def work():
        for kind in (Memif, SmallRing):
            with kind() as hosts:
                compare(hosts, program)
        with SmallRing(both=True) as hosts:
            # Often, since only now and then another thread is sending when the memory goes.
            suite(hosts, conformance, "memory taken back",
                  ["--nic", "acenic0", "--peer-nic", "acenic1", "--hold", "--gtest_filter=TakenBack.*", "--gtest_repeat=150"])
        stands_still = os.path.join(os.path.abspath(options.build), "tests", "legacy", "acenic_taken_back")
        for what in ("vi", "memory"):
            # Beside others the window of a sender may just then be too small for more frames than the ring holds.
            for _ in range(20):
                with SmallRing() as hosts:
                    hosts.settings["VIADUCT_LOG"] = "info"
                    if peer_stands_still(hosts, stands_still, what):
                        break
            else:
                raise Failure("peer stands still, %s ends: no frame ever had to wait" % what)
        with Memif() as hosts:
            to_ourselves(hosts, conformance)
        # Last, since it may not be had everywhere: then all of this counts as skipped.
        with Namespaces() as hosts:
            compare(hosts, program)

    return outcome(work)


if __name__ == "__main__":
    sys.exit(main())
