#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A peer that is stopped lives, and a peer that is killed is dead: of programs that talk without a break, one that gets no processor for
eight seconds loses nothing, and the end of a killed one is seen within a second.

    life.py --bin DIR --over udp|loopback|af_packet|memif|vhost [--mode shared|exclusive] [--user UID]
"""
import argparse
import os
import signal
import sys
import time

from hosts import OVER, Failure, end, kind_of, outcome, without_privileges
from shared import Shared, Steady

STOPPED_FOR = 8.0  # seconds: less than the silence that ends a connection (10 s)
SEEN_WITHIN = 1.0  # seconds of running time after which the other end sees that a program was killed
REPORTED = 0.4     # seconds: an end that is seen sooner was reported, since less than 650 ms of silence end no connection
ROUNDS = 4
CLIENTS = 12  # killed one soon after the other over udp: more than the deaths that a host's kernel reports at once (6)


def pair(hosts, program, number, there):
    """A server on host `there` and its client on host a."""
    server = Steady(hosts, there, program, "server", number)
    try:
        server.await_word("open")
        client = Steady(hosts, 0, program, "client", "host" + "ab"[there], number)
    except BaseException:
        end([server.process])
        raise
    return server, client


def stopped(hosts, program, places, one_port):
    """In each place a server and a client are stopped: of two pairs at the same time, or one after the other where a port has one program."""
    pairs, victims = [], []
    try:
        for there in places:
            for which in (0,) if one_port else (0, 1):
                pairs.append(pair(hosts, program, len(pairs), there))
                victims.append(pairs[-1][which])
        for server, client in pairs:
            client.await_word("connected")
        everyone = [one for both in pairs for one in both]
        for stopped_ones in (victims, [client for _, client in pairs]) if one_port else (victims,):
            time.sleep(0.3)  # sleeps: messages flow before the stop
            for one in stopped_ones:
                one.process.send_signal(signal.SIGSTOP)
            time.sleep(STOPPED_FOR)  # sleeps: the stop
            for one in stopped_ones:
                one.process.send_signal(signal.SIGCONT)
            time.sleep(1)  # sleeps: a loss would be reported
            lost = [one.name for one in everyone if one.said("lost") or one.said("end")]
            if lost:
                raise Failure("%s stopped for %.1f s: lost by %s" % ([one.name for one in stopped_ones], STOPPED_FOR, lost))
        messages = [client.finish() for _, client in pairs]
    finally:
        end([one.process for both in pairs for one in both])
    print("stopped for %.0f s            good: %s messages, none lost" % (STOPPED_FOR, messages), flush=True)


def killed(hosts, program, there, which, soonest, rounds=ROUNDS):
    """The server (0) or the client (1) of a pair is killed; `soonest`: in one of the rounds at least it is seen within that time."""
    seen = []
    for number in range(rounds):
        both = pair(hosts, program, number, there)
        try:
            both[1].await_word("connected")
            both[0].await_word("connected")
            time.sleep(0.3 + 0.1 * (number % 4))  # sleeps: the victim is killed at another moment each time
            at = both[which].kill()
            seen.append(both[1 - which].await_word("lost", limit=SEEN_WITHIN, also=[os.getpid()]) - at)
        finally:
            end([one.process for one in both])
    what = "%s on %s host" % (("a server", "a client")[which], ("the same", "another")[there])
    if min(seen) < 0:
        raise Failure("%s lost its connection %.3f s before it was killed" % (what, -min(seen)))
    if min(seen) > soonest:
        raise Failure("%s was killed: seen after %.3f s at best, and not reported" % (what, min(seen)))
    print("%-28s good: killed %d times, seen after %.0f to %.0f ms" % (what, rounds, min(seen) * 1000, max(seen) * 1000), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of acenic_steady")
    parser.add_argument("--over", required=True, choices=sorted(OVER))
    parser.add_argument("--mode", default="exclusive", choices=("exclusive", "shared"), help="of acenic")
    parser.add_argument("--user", type=int, help="all of it in a user namespace of that user")
    options = parser.parse_args()
    if options.user is not None:
        return without_privileges(options.user)
    program = os.path.join(os.path.abspath(options.bin), "acenic_steady")
    shares = options.mode == "shared"

    def run():
        joined = options.over in ("memif", "vhost")  # two ports and no more
        with (Shared(9000) if shares else kind_of(options.over)() if joined else kind_of(options.over)(2)) as hosts:
            hosts.settings["STEADY_NIC"] = hosts.provider + "0"
            one_port = hosts.provider == "acenic" and not shares  # a port has one program
            places = (1,) if one_port else (1, 0)
            stopped(hosts, program, places, one_port)
            for there in places:
                # At the other end of a joined port the driver reports the end of the process, and 650 ms of silence follow.
                soonest = SEEN_WITHIN if joined else REPORTED
                killed(hosts, program, there, 0, soonest)
                killed(hosts, program, there, 1, soonest, CLIENTS if hosts.provider == "udp" else ROUNDS)

    return outcome(run)


if __name__ == "__main__":
    sys.exit(main())
