#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Requests to hosts at which nothing has the port that requests go to: one that says so has no waiter, one that says
nothing is waited for, and with a key both are the same. A port that a program has answers no question.

    silence.py --asks PROGRAM [--user UID]
"""
import argparse
import os
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "acenic"))
from hosts import Failure, UdpNamespaces, end, finish, outcome, udp_address, without_privileges  # noqa: E402

from eventually import eventually  # noqa: E402

GRACE = 990  # ms: 1 s, less what clocks and rounding differ
HELD = 1.9  # seconds: a request that a program has is given up 2 s after the end of its host, and not sooner
TRIES = 10
LIMIT = 60  # seconds
ABSENT = "10.77.0.99"  # no host has it
SECOND = "1000"
# A question, then a request of a version that there is not, whose answer quotes it; what comes first.
SENDS = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.5)
came = None
while came is None:
    s.sendto(bytes(24), (sys.argv[1], 4792))
    s.sendto(bytes([200, 1]) + bytes(62), (sys.argv[1], 4792))
    try:
        came = s.recv(2000)
    except TimeoutError:
        pass  # no program has the port yet
print(len(came), came[3])
"""


def expect(hosts, asks, what, words, code, least=0, host=0):
    """The call ends with this code, after so many milliseconds at least."""
    process = hosts.start(host, asks, *words)
    try:
        said = finish(process, what, r"(%s [0-9]+\n)+" % code, LIMIT)
    finally:
        end([process])
    took = [int(line.split()[1]) for line in said.splitlines()]
    if min(took) < least:
        raise Failure("%s: %s after %d ms" % (what, code, min(took)))
    print("%-44s %s after %s ms" % (what, code, ", ".join(map(str, took))), flush=True)


def line_of(process, what, wanted):
    """Reads lines until the wanted one."""
    for line in process.stdout:
        if line.split()[0] == wanted:
            return line
    _, err = process.communicate()
    raise Failure("%s: never %s\n%s" % (what, wanted, err))


def daemons(hosts, host):
    """Those of that host, by its namespace: others may have one of the same address."""
    pids = subprocess.run(["ip", "netns", "pids", hosts.names[host]], check=True, capture_output=True, text=True)
    found = []
    for pid in pids.stdout.split():
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                if file.read().startswith(b"viaduct-udpd\0"):
                    found.append(int(pid))
        except OSError:
            pass  # it has ended
    return found


def until_there(hosts, asks):
    """A requester that asks again finds a server that comes later."""
    client = hosts.start(0, asks, "request", "hostb", "infinite", 1000000, stdin=subprocess.PIPE)
    server = None
    try:
        line_of(client, "a request to no server", "NO_MATCH")
        server = hosts.start(1, asks, "serve", stdin=subprocess.PIPE)
        for process, who in ((client, "the client"), (server, "the server")):
            line_of(process, who, "connected")
    finally:
        end([client] + ([server] if server else []))
    print("%-44s connected" % "a server that comes later", flush=True)


def restarted(hosts, asks):
    """A request that is made while no daemon has the port finds the program that waits, which starts another one."""
    server = hosts.start(1, asks, "serve", stdin=subprocess.PIPE)
    client = None
    try:
        until_killed(hosts)
        client = hosts.start(0, asks, "request", "hostb", "infinite", stdin=subprocess.PIPE)
        for process, name in ((client, "the client"), (server, "the server")):
            line_of(process, name, "connected")
    finally:
        end([server] + ([client] if client else []))
    print("%-44s connected" % "a request while a daemon is started anew", flush=True)


def until_killed(hosts):
    """The daemon of the second host is killed as soon as there is one."""
    for pid in eventually("a daemon serves", lambda: daemons(hosts, 1), limit=LIMIT):
        os.kill(pid, signal.SIGKILL)


def unanswered(hosts, asks):
    """What the program that has the port gets beside requests has no answer."""
    server = hosts.start(1, asks, "serve", stdin=subprocess.PIPE)
    try:
        question = hosts.start(0, sys.executable, "-c", SENDS, hosts.ip(1, 0))
        finish(question, "a question to viaduct-udpd", r"72 200\n", LIMIT)
    finally:
        end([server])
    print("%-44s good" % "a question to viaduct-udpd has no answer", flush=True)


def held(hosts, asks, server):
    """A client whose request this server has."""
    while True:
        client = hosts.start(0, asks, "request", "hostb", "infinite")
        try:
            while client.poll() is None:
                if select.select([server.stdout], [], [], 0.05)[0]:
                    line_of(server, "the server", "asked")
                    return client
        except BaseException:
            end([client])
            raise
        finish(client, "a request to a server that begins", r"NO_MATCH [0-9]+\n", LIMIT)


def host_ends(hosts, asks):
    """A program that has a request is killed, and its host's daemon with it."""
    for _ in range(TRIES):
        server = hosts.start(1, asks, "hold", stdin=subprocess.PIPE)
        client = None
        try:
            client = held(hosts, asks, server)
            time.sleep(1)  # sleeps: the client gets the answer that its request is held
            if client.poll() is not None:
                continue  # it gave up as the server was asked
            server.send_signal(signal.SIGSTOP)  # it would start another daemon
            began = time.monotonic()
            for pid in daemons(hosts, 1):
                os.kill(pid, signal.SIGKILL)
            server.kill()
            finish(client, "a request that a program had", r"NO_MATCH [0-9]+\n", LIMIT)
            took = time.monotonic() - began
            if took < HELD:
                raise Failure("a request that a program had was given up %.1f s after the end of its host" % took)
            print("%-44s NO_MATCH after %.1f s" % ("a host that ends with its programs", took), flush=True)
            return
        finally:
            end([server] + ([client] if client else []))
    raise Failure("no server had a request")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--asks", required=True, help="the program of asks.c")
    parser.add_argument("--user", type=int, help="all of it in a user namespace of that user")
    options = parser.parse_args()
    if options.user is not None:
        return without_privileges(options.user)
    asks = os.path.abspath(options.asks)

    def run():
        with UdpNamespaces(2) as hosts:
            with open(hosts.hosts, "a", encoding="ascii") as file:
                file.write("%s absent\n" % udp_address(ABSENT))
            expect(hosts, asks, "a host without a server", ["request", "hostb", "infinite", 3], "NO_MATCH", GRACE)
            expect(hosts, asks, "the own host", ["request", "hosta", "infinite"], "NO_MATCH", GRACE)
            expect(hosts, asks, "a host that is not there", ["request", "absent", SECOND], "TIMEOUT", 990)
            expect(hosts, asks, "a partner that has not come", ["peer", "hostb", SECOND], "TIMEOUT", 990)
            until_there(hosts, asks)
            restarted(hosts, asks)
            unanswered(hosts, asks)
            host_ends(hosts, asks)
            key = os.path.join(hosts.folder, "key")
            with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write("000102030405060708090a0b0c0d0e0f\n")
            hosts.set("auth_key_file", key)
            expect(hosts, asks, "a host without a server, with a key", ["request", "hostb", SECOND], "TIMEOUT", 990)

    return outcome(run)


if __name__ == "__main__":
    sys.exit(main())
