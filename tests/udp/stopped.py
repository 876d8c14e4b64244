#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""viaduct-udpd that is stopped, or has ended and comes back slowly: calls end by their own deadlines, connections go on
meanwhile, and few daemons are started.

    stopped.py --build BUILD --waits PROGRAM
"""
import argparse
import contextlib
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "acenic"))
from hosts import Failure, Loopback, end, finish, outcome  # noqa: E402

import udpd  # noqa: E402

LATE = 2000   # ms beyond its timeout; a call that waits for the daemon takes 5 s
SLOW = 1000   # ms: the slowest message; one that waits for the daemon's lock takes 5 s
AWAY = 3      # seconds from the start of a slow daemon until it listens
FEW = 4       # starts within that time; one at each failure were 15 or more
WAITING = 5000  # ms: longer than AWAY
CALLS = ("VipConnectWait", "VipConnectPeerRequest", "VipDisconnect")


def check_calls(said, timeouts):
    """Each call ended by its own deadline."""
    lines = [line.split() for line in said.splitlines() if line.startswith("Vip")]
    if [line[0] for line in lines] != list(CALLS) * len(timeouts):
        raise Failure("other calls than expected:\n" + said)
    for number, (call, code, took) in enumerate(lines):
        timeout = timeouts[number // len(CALLS)] if call == CALLS[0] else 0
        expected = {CALLS[0]: "TIMEOUT", CALLS[1]: "SUCCESS"}.get(call, code)
        if code != expected or int(took) > timeout + LATE:
            raise Failure("%s with %d ms: %s after %s ms" % (call, timeout, code, took))


def check_messages(said):
    last = said.splitlines()[-1].split()
    if last[0] != "messages" or int(last[2]) > SLOW:
        raise Failure("the connection stood still: " + " ".join(last))
    return "%s messages, the slowest after %s ms" % (last[1], last[2])


@contextlib.contextmanager
def talking(hosts, waits, *timeouts):
    """A program on host a that talks to an echo on host b."""
    echo = hosts.start(1, waits, "echo")
    talk = None
    try:
        talk = hosts.start(0, waits, "talk", "hostb", *timeouts)
        yield talk
    finally:
        end([echo] + ([talk] if talk else []))


def calls_keep_their_deadlines(hosts, build, waits):
    with udpd.listening(hosts, build, 0) as stopped:
        stopped.send_signal(signal.SIGSTOP)
        caller = hosts.start(0, waits, "call", 500, 0)
        try:
            check_calls(finish(caller, "calls", r"(.|\n)*"), (500, 0))
        finally:
            end([caller])
    print("calls of a program whose viaduct-udpd is stopped: good", flush=True)


def connections_go_on(hosts, build, waits):
    with udpd.listening(hosts, build, 1), udpd.listening(hosts, build, 0) as stopped:
        stopped.send_signal(signal.SIGSTOP)
        with talking(hosts, waits, 500, 0) as talk:
            said = finish(talk, "a program that talks", r"(.|\n)*")
    check_calls(said, (500, 0))
    print("a connection beside these calls: %s" % check_messages(said), flush=True)


def a_slow_daemon(hosts, build, waits):
    """It ends under a program that waits, and each that is started takes its time."""
    starts = os.path.join(hosts.folder, "starts")
    slow = os.path.join(hosts.folder, "slow")
    with open(slow, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\necho >>%s\nsleep %d\nexec %s \"$@\"\n" % (starts, AWAY, os.path.join(build, "sbin/viaduct-udpd")))
    os.chmod(slow, 0o755)
    hosts.settings["VIADUCT_UDPD"] = slow
    try:
        with udpd.listening(hosts, build, 1), udpd.listening(hosts, build, 0) as ended, talking(hosts, waits, WAITING) as talk:
            for word in ("connected", "calls"):
                if talk.stdout.readline().strip() != word:
                    raise Failure("a program that talks: not " + word)
            ended.kill()
            ended.wait()
            said = finish(talk, "a program that talks", r"(.|\n)*")
    finally:
        del hosts.settings["VIADUCT_UDPD"]
    check_calls(said, (WAITING,))
    with open(starts, encoding="ascii") as file:
        count = len(file.readlines())
    if count > FEW:
        raise Failure("%d daemons were started in %d s" % (count, AWAY))
    print("a slow daemon: %d started, %s" % (count, check_messages(said)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--waits", required=True, help="the program of waits.c")
    options = parser.parse_args()
    waits, build = os.path.abspath(options.waits), os.path.abspath(options.build)

    def run():
        with Loopback() as hosts:
            calls_keep_their_deadlines(hosts, build, waits)
            connections_go_on(hosts, build, waits)
            a_slow_daemon(hosts, build, waits)

    return outcome(run)


if __name__ == "__main__":
    sys.exit(main())
