#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The whole conformance suite over acenic or udp. The two ends of each pair are on two ports of one process, so that every frame passes
through both; partner processes run on another host.

    conformance.py --suite PROGRAM [--over af_packet|memif|vhost|udp|loopback] [--mode exclusive|shared] [--mtu N] [--filter TESTS]
                   [--user UID]

af_packet: three interfaces in one network namespace and one in another, joined by a bridge. memif and vhost join two ports and no more:
tests with a partner process have a run of their own, in which the process has one end of the link and its partner the other.
udp: as af_packet, with IPv4 addresses. loopback: addresses of the loopback interface are the ports.
shared: each port belongs to an engine process, which the suite starts and which leaves by itself.
"""
import argparse
import os
import re
import subprocess
import sys
import time

from hosts import OVER, Failure, finish, kind_of, outcome, without_privileges

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


def suite(hosts, program, what, arguments):
    """One run of the suite, which must be good."""
    began = time.monotonic()
    out = finish(hosts.start(0, program, "--gtest_brief=1", *arguments), what, r"(.|\n)*\[  PASSED  \] (.|\n)*", LIMIT)
    passed = re.search(r"\[  PASSED  \] (\d+) test", out).group(1)
    skipped = re.search(r"\[  SKIPPED \] (\d+) test", out)
    print("%-28s %s passed, %s skipped, %.1f s" % (what, passed, skipped.group(1) if skipped else "0", time.monotonic() - began),
          flush=True)


def tests(options, which, without):
    """--gtest_filter of `which` without those; or of those that were asked for."""
    if options.filter:
        return "--gtest_filter=" + options.filter
    return "--gtest_filter=%s-%s" % (which, ":".join(without))


def left_out(options):
    """The tests that cannot be had over these ports, and why."""
    if kind_of(options.over).provider == "udp":
        return {}
    return {test: why for test, why in LEFT_OUT.items() if "over" not in why or "over %s:" % options.over in why}


def over_interfaces(options):
    """v0 and v1 of host a are the two ends of pairs, v2 there is for forked children, v2 of host b for partner processes."""
    with kind_of(options.over)(2, ports=3, mtu=options.mtu) as hosts:
        if hosts.provider == "acenic":
            hosts.set("mode", options.mode)
        nics = [word for option, number in (("--nic", 0), ("--peer-nic", 1), ("--child-nic", 2))
                for word in (option, hosts.provider + str(number))]
        if hosts.on(1):
            nics += ["--child-command", " ".join(hosts.on(1))]
        if not options.filter:
            suite(hosts, options.suite, options.over + ", opening", nics + [tests(options, OPENING, left_out(options))])
        suite(hosts, options.suite, options.over, nics + ["--hold", tests(options, "*", [OPENING, *left_out(options)])])


def await_engines(hosts):
    """Engine processes of these hosts' ports leave by themselves."""
    for _ in range(100):
        left = subprocess.run(["pgrep", "-f", "^viaduct-acenicd.*" + hosts.folder], capture_output=True, text=True, check=False).stdout
        if not left:
            return
        time.sleep(0.1)
    raise Failure("engine processes are left: " + left)


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
    suite(hosts, options.suite, over + ", two ports", nics + ["--hold", tests(options, "*", [OPENING, WITH_PARTNERS, *left_out(options)])])
    if options.filter:
        return
    suite(hosts, options.suite, over + ", opening", nics + [tests(options, OPENING, [WITH_PARTNERS, *left_out(options)])])
    suite(hosts, options.suite, over + ", two processes",
          ["--nic", "acenic0", "--child-nic", "acenic1", tests(options, WITH_PARTNERS, left_out(options))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", required=True, help="viaduct_conformance")
    parser.add_argument("--over", default="af_packet", choices=tuple(OVER))
    parser.add_argument("--mode", default="exclusive", choices=("exclusive", "shared"))
    parser.add_argument("--mtu", type=int, default=9000)
    parser.add_argument("--filter", help="which tests, as GoogleTest has it; all")
    parser.add_argument("--user", type=int, help="udp: all of it in a user namespace of that user")
    options = parser.parse_args()
    if options.user is not None:
        return without_privileges(options.user)
    options.suite = os.path.abspath(options.suite)
    code = outcome(lambda: (over_a_pair if options.over in ("memif", "vhost") else over_interfaces)(options))
    if code != 0:
        return code
    for test, why in left_out(options).items():
        print("left out: %s: %s" % (test, why))
    return 0


if __name__ == "__main__":
    sys.exit(main())
