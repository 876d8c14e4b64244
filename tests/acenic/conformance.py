#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The conformance suite over acenic or udp, whole or in part. The two ends of each pair are on two ports of one process, so that every frame passes
through both; partner processes run on another host.

    conformance.py --suite PROGRAM [--over af_packet|memif|vhost|udp|loopback] [--mode exclusive|shared] [--mtu N] [--user UID]
                   [--rows NAME,... | --filter TESTS]

af_packet: three interfaces in one network namespace and one in another, joined by a bridge. memif and vhost join two ports and no more:
tests with a partner process have a run of their own, in which the process has one end of the link and its partner the other.
udp: as af_packet, with IPv4 addresses. loopback: addresses of the loopback interface are the ports.
shared: each port belongs to an engine process, which the suite starts and which leaves by itself.
"""
import argparse
import contextlib
import os
import re
import subprocess
import sys
import time

from hosts import OVER, Failure, finish, kind_of, outcome, without_privileges

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../udp"))
import udpd  # noqa: E402
from eventually import Late, communicated, holds

# Those that start partner processes or fork.
WITH_PARTNERS = "Fork.*:Processes.*:*RemoteProcessKilled*:*ThoughItEndsWithoutAWord*:LeavingBehind.*"
# Those about opening and closing; the others have the ports open all the time, which take a tenth of a second to open.
OPENING = "Nic*:Limits.*"
# Left out, and said so at the end of each run; docs/acenic.md, "What it does not do yet".
LEFT_OUT = {
    "Fork.AChildOpensANicOfItsOwnAndConnectsToItsParent": "DPDK does not live through a fork",
    "Fork.ABareChildOpensANicOfItsOwnAndConnectsToItsParent": "DPDK does not live through a fork",
    "NicClose.OpeningAndClosingLeavesNoFileBehind": "over memif: the number of the socket on which its driver listened stays taken",
}
LIMIT = 300

# The suite runs whole in one setting of each provider, and of each mode of acenic. Every other setting runs the tests that it can change:
ROWS = {
    # The size of a frame, and how a port sends and receives it, change what a message is cut into, what is put together again, what
    # is acknowledged and repeated, and how long a message may be.
    "messages": "*/Messages.*:ReceptionLevel.*:MessageThreads.*:TakenBack.*:Segments.*:Placement.*:*/RdmaWrite.*:*/RdmaRead.*:"
                "*/ReliableRdmaRead.*:Fence.*:*/RdmaRefusal.*:*/RdmaReadRefusal.*:*/Reliability.*:ReliabilityUnreliable.*:Atomics.*:"
                "*/Batches.*:WriteNow.*:*/PastTheRegion.*:*/SendMistakes.*:ReceiveMistakes.*:ReceiveTolerance.*:*/Overrun.*:"
                "*/Watching.*:ManyThreads.*",
    # Whether two ports are of two hosts, of one host or one and the same changes how their ends find each other, connect and part.
    "connections": "Connect*.*:Peer.*:*/Leaving.*:ConnLost.*:End.*:" + WITH_PARTNERS,
    # A driver that can sleep until a frame comes, or has to look for one, changes how a thread waits and is woken.
    "waiting": "Wait.*:SendWait.*:Notify.*:*/NotifyStates.*:CqWait.*:CqNotify.*:Cancel.*:SignalHandler.*",
    # How a port opens and what it says of itself.
    "opening": OPENING,
}

# Not in any row: they last as long as the silence after which a peer counts as gone, which the mode sets, and no port or size. They
# wait for ten seconds each and do nothing meanwhile, so that the whole suite has a run beside it for each of these.
SILENCE = ("*/Reliability.LinkDown/*", "*/Reliability.MessageLostInTheNetwork/*", "*/Reliability.MessageCorruptedInTheNetwork/*")


def row_filter(names, without=()):
    """--gtest_filter of these rows without those tests."""
    return "--gtest_filter=%s-%s" % (":".join(ROWS[name] for name in names), ":".join([*SILENCE, *without]))


def row_names(text):
    """The names of ROWS in an option, with commas between them."""
    for name in text.split(","):
        if name not in ROWS:
            raise argparse.ArgumentTypeError("%s: there are %s" % (name, ", ".join(ROWS)))
    return text.split(",")


def suite(hosts, program, what, arguments):
    """One run of the suite, which must be good."""
    began = time.monotonic()
    out = finish(hosts.start(0, program, "--gtest_brief=1", *arguments), what, r"(.|\n)*\[  PASSED  \] (.|\n)*", LIMIT)
    passed = re.search(r"\[  PASSED  \] (\d+) test", out).group(1)
    skipped = re.search(r"\[  SKIPPED \] (\d+) test", out)
    if passed == "0" and not skipped:
        raise Failure("%s: no test has that name" % what)
    print("%-28s %s passed, %s skipped, %.1f s" % (what, passed, skipped.group(1) if skipped else "0", time.monotonic() - began),
          flush=True)


def tests(options, which, without):
    """--gtest_filter of `which` without those; or of those that were asked for."""
    if options.filter:
        return "--gtest_filter=" + options.filter
    return "--gtest_filter=%s-%s" % (which, ":".join(without))


def wants(options, part):
    """Whether the run has that part of the tests: all have where no rows were asked for."""
    return not options.rows or part in options.rows


class Silence:
    """The tests of SILENCE, each on hosts of its own, beside the rest of the whole suite."""

    def __init__(self, options):
        common = [sys.executable, "-B", os.path.abspath(__file__), "--suite", options.suite, "--over", options.over, "--mode", options.mode,
                  "--mtu", str(options.mtu)]
        whole = not options.rows and not options.filter
        self.runs = {which: subprocess.Popen([*common, "--filter", which], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                             stderr=subprocess.STDOUT, text=True) for which in (SILENCE if whole else ())}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.runs.values():
            process.communicate()  # each removes its hosts

    def good(self):
        """All have been."""
        for which, process in self.runs.items():
            try:
                said = communicated(process, LIMIT)[0]
            except Late:
                raise Failure("%s: not ended within %d s" % (which, LIMIT)) from None
            if process.returncode != 0:
                raise Failure("%s: exit status %d\n%s" % (which, process.returncode, said))
            print(which, said, end="", flush=True)


def has_body(options):
    """Whether the run has tests whose subject is not opening."""
    return bool(options.filter) or set(options.rows) != {"opening"}


def body(options, without):
    """--gtest_filter of the tests whose subject is not opening, which have the ports open all the time: all, or those of the rows."""
    if options.rows and not options.filter:
        return row_filter([row for row in options.rows if row != "opening"], without)
    return tests(options, "*", [*SILENCE, *without])


def left_out(options):
    """The tests that cannot be had over these ports, and why."""
    if kind_of(options.over).provider == "udp":
        return {}
    return {test: why for test, why in LEFT_OUT.items() if "over" not in why or "over %s:" % options.over in why}


def daemon_of_partners(hosts, options):
    """Over udp, the end of a killed process is seen at once where viaduct-udpd of its NIC runs. The first process starts the daemon, and
    would be killed meanwhile."""
    if hosts.provider != "udp":
        return contextlib.nullcontext()
    build = os.path.join(os.path.dirname(options.suite), "../..")
    return udpd.listening(hosts, build, 1, 2, hosts.on(1))


def over_interfaces(options):
    """v0 and v1 of host a are the two ends of pairs, v2 there is for forked children, v2 of host b for partner processes."""
    with kind_of(options.over)(2, ports=3, mtu=options.mtu) as hosts:
        if hosts.provider == "acenic":
            hosts.set("mode", options.mode)
        nics = [word for option, number in (("--nic", 0), ("--peer-nic", 1), ("--child-nic", 2))
                for word in (option, hosts.provider + str(number))]
        if hosts.on(1):
            nics += ["--child-command", " ".join(hosts.on(1))]
        if not options.filter and wants(options, "opening"):
            suite(hosts, options.suite, options.over + ", opening", nics + [tests(options, OPENING, left_out(options))])
        if not has_body(options):
            return
        with daemon_of_partners(hosts, options):
            suite(hosts, options.suite, options.over, nics + ["--hold", body(options, [OPENING, *left_out(options)])])


def await_engines(hosts):
    """Engine processes of these hosts' ports leave by themselves."""
    def left():
        return subprocess.run(["pgrep", "-f", "^viaduct-acenicd.*" + hosts.folder], capture_output=True, text=True, check=False).stdout
    if not holds(lambda: not left(), [int(pid) for pid in left().split()]):
        raise Failure("engine processes are left: " + left())


def over_a_pair(options):
    with kind_of(options.over)(both=True, mtu=options.mtu) as hosts:
        hosts.settings["VIADUCT_ACENIC_MODE"] = options.mode
        try:
            on_a_pair(hosts, options)
        finally:
            if options.mode == "shared":
                await_engines(hosts)


def on_a_pair(hosts, options):
    over = options.over
    nics = ["--nic", "acenic0", "--peer-nic", "acenic1"]
    if has_body(options):
        suite(hosts, options.suite, over + ", two ports", nics + ["--hold", body(options, [OPENING, WITH_PARTNERS, *left_out(options)])])
    if options.filter:
        return
    if wants(options, "opening"):
        suite(hosts, options.suite, over + ", opening", nics + [tests(options, OPENING, [WITH_PARTNERS, *left_out(options)])])
    if wants(options, "connections"):
        suite(hosts, options.suite, over + ", two processes",
              ["--nic", "acenic0", "--child-nic", "acenic1", tests(options, WITH_PARTNERS, left_out(options))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", required=True, help="viaduct_conformance")
    parser.add_argument("--over", default="af_packet", choices=tuple(OVER))
    parser.add_argument("--mode", default="exclusive", choices=("exclusive", "shared"))
    parser.add_argument("--mtu", type=int, default=9000)
    parser.add_argument("--filter", help="which tests, as GoogleTest has it; all")
    parser.add_argument("--rows", type=row_names, default=[], help="of all tests: %s" % ", ".join(ROWS))
    parser.add_argument("--user", type=int, help="udp: all of it in a user namespace of that user")
    options = parser.parse_args()
    if options.user is not None:
        return without_privileges(options.user)
    options.suite = os.path.abspath(options.suite)

    def work():
        with Silence(options) as silence:
            (over_a_pair if options.over in ("memif", "vhost") else over_interfaces)(options)
            silence.good()

    code = outcome(work)
    if code != 0:
        return code
    for test, why in left_out(options).items() if not options.filter else ():
        print("left out: %s: %s" % (test, why))
    return 0


if __name__ == "__main__":
    sys.exit(main())
