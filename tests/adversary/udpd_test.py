#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One user against root's viaduct-udpd, which all users share: connections that say nothing, all the places there are, files whose
closing waits, and filters without end do not keep another user's program from being welcomed and having its filter known.

    udpd_test.py --build BUILD [--seconds 3]
"""
import argparse
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import users

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from report import rows  # noqa: E402

SLOWER = 1.5  # seconds, beyond ten times what it takes without a flood
MAGIC, VERSION, WELCOMED = 0x55445044, 1, 0  # providers/udp/daemon/protocol.hpp
ADD, KNOWN = 0, 2
HOST = "127.0.0.1"
FILTERS = 150000  # more than twice those that one user may have; each takes about 600 bytes
MOST_KIB = 64 << 10
MOST_FILES = 2000  # of the daemon, while it is handed 253 at a time
FIRST = 40  # files that are handed over while the daemon is stopped


def hello(data):
    return struct.pack("=IIQ4sHH", MAGIC, VERSION, 7, socket.inet_aton(HOST), socket.htons(data), 0)


def filter_message(number, discriminator):
    end = struct.pack("=6sH64s", bytes(6), len(discriminator), discriminator)
    return struct.pack("=IIII", ADD, number, 0, 0) + end + end


def greeted(name, data=9):
    client = users.connect(name, 30)
    client.send(hello(data))
    answer = client.recv(4096)
    if len(answer) < 12 or struct.unpack_from("=IIi", answer) != (MAGIC, VERSION, WELCOMED):
        raise users.Failure("not welcome: %r" % answer[:80])
    return client


def welcome(name):
    """Seconds until a new program is welcome and its filter is known."""
    begin = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as data:
        data.bind((HOST, 0))
        data.settimeout(30)
        with greeted(name, data.getsockname()[1]) as client:
            client.send(filter_message(1, b"victim"))
            said = data.recv(4096)
    if len(said) < 2 or said[1] != KNOWN:
        raise users.Failure("its filter is not known: %r" % said)
    return time.monotonic() - begin


def take_all_places(ready, name):
    """As many as are welcome."""
    clients = []
    with contextlib.suppress(users.Failure, OSError):
        while len(clients) < 5000:
            clients.append(greeted(name))
    ready()
    signal.pause()


def hand_over_what_lingers(ready, name):
    """The daemon is stopped until the first ones are closed here: it is the last to close them."""
    kept, closing = [], []
    while True:
        near, far = users.lingering_socket()
        client = users.connect(name, 30)
        with contextlib.suppress(OSError):
            users.hand_over(client, hello(9) if len(kept) % 4 else b"?", [near])
        # Should the daemon have closed it before, this waits.
        closing.append(threading.Thread(target=near.close, daemon=True))
        closing[-1].start()
        kept += [far, client]
        if len(kept) == 2 * FIRST:
            users.eventually.eventually("the files are closed here", lambda: not any(one.is_alive() for one in closing))
            ready()
        if len(kept) > 2500:
            time.sleep(0.2)  # sleeps: the pace of the attack


def add_filters_without_end(ready, name):
    """At one discriminator, then at as many as there are filters; what the daemon has is forgotten at once in between."""
    with greeted(name) as client:
        ready()
        for number in range(FILTERS // 5):
            client.send(filter_message(number + 1, b"one"))
    client = greeted(name)
    for number in range(FILTERS):
        client.send(filter_message(number + 1, b"%060d" % number))
    while True:
        for number in range(1000):
            client.send(filter_message(number + 1, b"%060d" % number))
        time.sleep(0.01)  # sleeps: the pace of the attack


def speak_in_all_places(ready, name):
    """As many sessions as are welcome, each with more to say than the daemon reads at a time."""
    clients = []
    with contextlib.suppress(users.Failure, OSError):
        while len(clients) < 5000:
            clients.append(greeted(name))
    for client in clients:
        client.setblocking(False)
    filters = [filter_message(number + 1, b"same%d" % number) for number in range(8)]
    rounds = 0
    while True:
        for client in clients:
            with contextlib.suppress(BlockingIOError):
                for filter in filters:
                    client.send(filter)
        rounds += 1
        if rounds == 30:
            ready()


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind((HOST, 0))
        return free.getsockname()[1]


def attacked(flood, name, daemon, seconds, quiet, *more):
    if flood is hand_over_what_lingers:
        os.kill(daemon, signal.SIGSTOP)
    with users.attacker(flood, name, *more):
        os.kill(daemon, signal.SIGCONT)
        times = users.welcomes(lambda: welcome(name), seconds)
        memory, threads, files = users.held_by(daemon)
    typical, worst = users.slowest_of_twenty(times), max(times)
    print("%-24s %5d welcomes, 95 of 100 within %7.1f ms, worst %7.1f ms; %d threads, %d files, %d KiB" %
          (flood.__name__, len(times), typical * 1e3, worst * 1e3, threads, files, memory), flush=True)
    if worst > users.LATEST or typical > 10 * quiet + SLOWER:
        raise users.Failure("the victim waits too long (%.1f ms without it)" % (quiet * 1e3))
    if threads > 24:
        raise users.Failure("%d threads" % threads)
    if flood is users.hand_over_what_hangs and files > MOST_FILES:
        raise users.Failure("%d descriptors" % files)
    if memory > MOST_KIB:
        raise users.Failure("viaduct-udpd has %d KiB" % memory)


FLOODS = (users.be_silent, take_all_places, add_filters_without_end, speak_in_all_places, hand_over_what_lingers)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    program = os.path.join(options.build, "sbin/viaduct-udpd")
    if os.geteuid() != 0:
        users.skip("needs root, to be three users")
    chosen = rows.chosen([flood.__name__ for flood in FLOODS] + [users.hand_over_what_hangs.__name__])
    users.raise_files()
    name = "\0viaduct-adversary-udpd-%d" % os.getpid()
    run, failed = [], []
    with tempfile.TemporaryFile("w+") as log:
        daemon = subprocess.Popen([program, "--address", HOST, "--port", str(free_port()), "--socket", "@" + name[1:],
                                   "--linger-ms", "-1", "--foreground"], stdout=log, stderr=log)

        def judge(flood, *more):
            run.append(flood.__name__)
            try:
                attacked(flood, name, daemon.pid, options.seconds, quiet, *more)
            except users.Failure as failure:
                print("FAILED: %s: %s" % (flood.__name__, failure), flush=True)
                failed.append(flood.__name__)

        try:
            def listens():
                with contextlib.suppress(OSError, users.Failure):
                    return welcome(name) >= 0
                return daemon.poll() is not None
            if not users.eventually.holds(listens, [daemon.pid], 30) or daemon.poll() is not None:
                log.seek(0)
                print("FAILED: viaduct-udpd does not serve: " + log.read()[-300:])
                return 1
            quiet = users.slowest_of_twenty(users.welcomes(lambda: welcome(name), 1))
            print("%-24s 95 of 100 within %.1f ms" % ("alone", quiet * 1e3), flush=True)
            for flood in FLOODS:
                if flood.__name__ in chosen:
                    judge(flood)
            if users.hand_over_what_hangs.__name__ in chosen:
                with users.file_that_hangs() as path:
                    if path is not None:
                        judge(users.hand_over_what_hangs, path, hello(9))
        finally:
            daemon.kill()
            daemon.wait()
    if not run:
        users.skip("no FUSE here")
    rows.report(failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
