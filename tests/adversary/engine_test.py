#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One user against root's engine process of acenic, which all users share: 140 connections of his that say nothing, or files whose
closing waits, do not keep another user's program from being welcomed.

    engine_test.py --build BUILD [--seconds 3]
"""
import argparse
import contextlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import users

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import temporary  # noqa: E402
from report import rows  # noqa: E402

SLOWER = 1.5  # seconds, beyond ten times what it takes without a flood
MOST_FILES = 2000  # of the engine process, while it is handed 253 at a time
MAGIC, VERSION, WELCOMED = 0x54494732, 3, 0  # providers/acenic/daemon/protocol.hpp


def address():
    return "\0viaduct-adversary-%d" % os.getpid()


def hello(port):
    return struct.pack("=II256s", MAGIC, VERSION, port.encode())


def welcome(name, port):
    """Seconds until a new program is welcome."""
    begin = time.monotonic()
    with users.connect(name, 30) as client:
        client.send(hello(port))
        answer = client.recv(4096)
    if len(answer) < 12 or struct.unpack_from("=IIi", answer) != (MAGIC, VERSION, WELCOMED):
        raise users.Failure("not welcome after %.1f s: %r" % (time.monotonic() - begin, answer[:80]))
    return time.monotonic() - begin


def take_all_places(ready, name, port):
    """Each is welcome, has a place, and goes no further."""
    clients = []
    ready()
    while True:
        client = users.connect(name, 30)
        with contextlib.suppress(OSError):
            client.send(hello(port))
            clients.append(client)
        if len(clients) > 100:
            clients.pop(0).close()
        time.sleep(0.001)  # sleeps: the pace of the attack


def hand_over_what_lingers(ready, name, port):
    ready()
    kept = []
    while True:
        near, far = users.lingering_socket()
        client = users.connect(name, 30)
        with contextlib.suppress(OSError):
            users.hand_over(client, hello(port), [near])
        near.close()
        kept += [far, client]
        if len(kept) > 2500:
            time.sleep(0.2)  # sleeps: the pace of the attack


FLOODS = (users.be_silent, take_all_places, hand_over_what_lingers)


def is_harmless(flood, name, port, engine, seconds, quiet, *more):
    try:
        with users.attacker(flood, name, *more):
            times = users.welcomes(lambda: welcome(name, port), seconds)
            _, threads, files = users.held_by(engine)
        typical, worst = users.slowest_of_twenty(times), max(times)
        print("%-24s %5d welcomes, 95 of 100 within %7.1f ms, worst %7.1f ms; %d threads, %d files" %
              (flood.__name__, len(times), typical * 1e3, worst * 1e3, threads, files), flush=True)
        if worst > users.LATEST or typical > 10 * quiet + SLOWER:
            raise users.Failure("the victim waits too long (%.1f ms without it)" % (quiet * 1e3))
        if threads > 24:
            raise users.Failure("%d threads" % threads)
        if flood is users.hand_over_what_hangs and files > MOST_FILES:
            raise users.Failure("%d descriptors" % files)
    except users.Failure as failure:
        print("FAILED: %s: %s" % (flood.__name__, failure), flush=True)
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    program = os.path.join(options.build, "sbin/viaduct-acenicd")
    if os.geteuid() != 0:
        users.skip("needs root, to be three users")
    if not os.path.exists(program):
        users.skip("the provider acenic is not built")
    chosen = rows.chosen([flood.__name__ for flood in FLOODS] + [users.hand_over_what_hangs.__name__])
    users.raise_files()
    folder = tempfile.mkdtemp(prefix="acenic-", dir=temporary.for_sockets())
    name = address()
    port = "net_memif,socket=%s/pair,role=server,mac=02:00:00:00:00:02" % folder
    with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
        engine = subprocess.Popen([program, "--port", port, "--socket", "@" + name[1:], "--linger-ms", "-1", "--foreground"],
                                  stdout=log, stderr=log)
        run, failed = [], []

        def judge(flood, *more):
            run.append(flood.__name__)
            if not is_harmless(flood, name, port, engine.pid, options.seconds, quiet, *more):
                failed.append(flood.__name__)

        try:
            def listens():
                with contextlib.suppress(OSError, users.Failure):
                    return welcome(name, port) >= 0
                return engine.poll() is not None
            if not users.eventually.holds(listens, [engine.pid], 30) or engine.poll() is not None:
                log.seek(0)
                users.skip("no engine process over memif here: " + log.read()[-300:])
            quiet = users.slowest_of_twenty(users.welcomes(lambda: welcome(name, port), 1))
            print("%-24s 95 of 100 within %.1f ms" % ("alone", quiet * 1e3), flush=True)
            for flood in FLOODS:
                if flood.__name__ in chosen:
                    judge(flood, port)
            if users.hand_over_what_hangs.__name__ in chosen:
                with users.file_that_hangs() as path:
                    if path is not None:
                        judge(users.hand_over_what_hangs, path, hello(port))
        finally:
            engine.kill()
            engine.wait()
            shutil.rmtree(folder, ignore_errors=True)
    if not run:
        users.skip("no FUSE here")
    rows.report(failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
