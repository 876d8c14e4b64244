#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""At root's viaduct-udpd a user waits for the name of another user's server, earlier and more often than the server does. The server
gets its user's client; the first user gets no request, unless agent.cross_user is true.

    users.py --build BUILD --waits PROGRAM
"""
import argparse
import contextlib
import os
import select
import signal
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "acenic"))
from hosts import Failure, Loopback, Skipped, end, finish, outcome  # noqa: E402

import udpd  # noqa: E402
from eventually import eventually  # noqa: E402

VICTIM, THIEF = 4241, 4242  # user ids; they need no name
MAGIC, VERSION, ADD = 0x55445044, 1, 0  # providers/udp/daemon/protocol.hpp
MARK, REQUEST, KNOWN = 0xFD, 1, 2
FILTERS = 20
TIMES = 3


def filter_message(number):
    end_of = struct.pack("=6sH64s", bytes(6), 4, b"echo")
    return struct.pack("=IIII", ADD, number, 0, 0) + end_of + end_of


def steal(name, ip, says):
    """Writes a letter once its filters are known, and one for each request that it gets."""
    os.setgroups([])
    os.setgid(THIEF)
    os.setuid(THIEF)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as data, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        data.bind((ip, 0))
        client.connect(name)
        client.send(struct.pack("=IIQ4sHH", MAGIC, VERSION, 7, socket.inet_aton(ip), socket.htons(data.getsockname()[1]), 0))
        client.recv(4096)
        for number in range(1, FILTERS + 1):
            client.send(filter_message(number))
        known = 0
        while True:
            came = data.recv(70000)
            if came[0] != MARK:
                continue
            known += came[1] == KNOWN
            if came[1] == KNOWN and known == FILTERS:
                os.write(says, b"k")
            if came[1] == REQUEST:
                os.write(says, b"r")


@contextlib.contextmanager
def thief(name, ip):
    """The end of a pipe that has a letter for each request that the thief gets."""
    said, says = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            steal(name, ip, says)
        except OSError as error:
            print("the thief: %s" % error, file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    os.close(says)
    try:
        eventually("the thief waits", lambda: select.select([said], [], [], 0)[0], [pid])
        if os.read(said, 1) != b"k":
            raise Failure("the thief does not wait")
        yield said
    finally:
        os.close(said)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def talk(hosts, waits, what):
    echo = hosts.start(0, waits, "echo")
    client = None
    try:
        client = hosts.start(0, waits, "talk", "hosta", 100)
        finish(client, what, r"(.|\n)*messages [0-9]+ [0-9]+\n")
    finally:
        end([echo] + ([client] if client else []))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--waits", required=True, help="the program of waits.c")
    options = parser.parse_args()
    waits, build = os.path.abspath(options.waits), os.path.abspath(options.build)

    def run():
        if os.geteuid() != 0:
            raise Skipped("needs root, to be two users")
        with Loopback(user=VICTIM) as hosts:
            name, ip = udpd.socket_name(hosts, 0), hosts.ip(0, 0)
            with udpd.listening(hosts, build, 0), thief(name, ip) as taken:
                for _ in range(TIMES):
                    talk(hosts, waits, "a client beside the thief")
                if select.select([taken], [], [], 0)[0]:
                    raise Failure("another user has got the request of a client of this host")
            print("a client beside another user's filters for the same name: good", flush=True)
            with udpd.listening(hosts, build, 0, VIADUCT_AGENT_CROSS_USER="true"), thief(name, ip) as taken:
                client = hosts.start(0, waits, "talk", "hosta", 100)
                try:
                    eventually("a request reaches another user's program", lambda: select.select([taken], [], [], 0)[0], [client.pid])
                finally:
                    end([client])
            print("agent.cross_user: a client and another user's filter: good", flush=True)

    return outcome(run)


if __name__ == "__main__":
    sys.exit(main())
