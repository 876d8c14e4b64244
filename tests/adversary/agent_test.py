#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One user against an agent that all users share: whatever he floods it with, another user's VipOpenNic succeeds, and takes little
longer than before. What the agent holds stays within bounds.

    agent_test.py --build BUILD [--seconds 3]
"""
import argparse
import contextlib
import os
import shutil
import socket
import sys
import time

import users

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from report import rows  # noqa: E402

SLOWER = 1.5  # seconds that the 95th of a hundred calls may take beyond ten times what it takes without a flood
MOST_THREADS = 20
MOST_MEMORY = 96 * 1024  # KiB beyond what it was


def ask_for_status(ready, path):
    """300 sessions ask for everything, one request after the other, and read nothing."""
    sessions = [users.joined(path) for _ in range(300)]
    for session in sessions:
        session.setblocking(False)
    request = users.message(users.STATUS)
    ready()
    while True:
        progress = False
        for session in sessions:
            with contextlib.suppress(OSError):
                for _ in range(16):
                    session.send(request)
                    progress = True
        if not progress:
            time.sleep(0.01)  # sleeps: the pace of the attack


def read_and_ask_for_status(ready, path):
    """The same, but they take their answers, so that they are asked for more."""
    sessions = [users.joined(path) for _ in range(300)]
    for session in sessions:
        session.setblocking(False)
    request = users.message(users.STATUS)
    ready()
    while True:
        for session in sessions:
            with contextlib.suppress(OSError):
                for _ in range(8):
                    session.send(request)
            with contextlib.suppress(OSError):
                while session.recv(16384):
                    pass


def be_silent(ready, path):
    """As many sockets as it gets, none of which says anything; each one that is closed comes again. Two users do that at once: half of
    the agent's files for each of them leave none."""
    sockets = []

    def fill():
        while len(sockets) < 4096:
            client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            client.setblocking(False)
            try:
                client.connect(path)
            except OSError:
                client.close()
                return
            sockets.append(client)

    for _ in range(20):
        fill()
        time.sleep(0.02)  # sleeps: the pace of the attack
    ready()
    while True:
        living = []
        for client in sockets:
            try:
                client.recv(1)
                client.close()
            except BlockingIOError:
                living.append(client)
            except OSError:
                client.close()
        sockets[:] = living
        fill()
        time.sleep(0.01)  # sleeps: the pace of the attack


def say_half_a_hello(ready, path):
    """Connects, says what is no message or nothing, and leaves."""
    ready()
    kept = []
    number = 0
    while True:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.setblocking(False)
        with contextlib.suppress(OSError):
            client.connect(path)
            if number % 3:
                client.send(users.HELLO_MESSAGE[:7 + number % 60])
        number += 1
        kept.append(client)
        if len(kept) > 500:
            kept.pop(0).close()


def hand_over_what_lingers(ready, path):
    """Sockets whose last close waits: each is handed over, and closed here before the agent does it."""
    ready()
    far_ends = []
    while True:
        batch = []
        for _ in range(4):
            near, far = users.lingering_socket()
            far_ends.append(far)
            batch.append(near)
        with contextlib.suppress(OSError):
            client = users.connect(path)
            users.hand_over(client, users.message(users.HELLO), batch)
            far_ends.append(client)
        for near in batch:
            near.close()
        if len(far_ends) > 2500:
            time.sleep(0.2)  # sleeps: the pace of the attack


FLOODS = [ask_for_status, read_and_ask_for_status, be_silent, say_half_a_hello, hand_over_what_lingers]


def opens(folder, agent, seconds):
    """How long each VipOpenNic of the victim has taken, in seconds."""
    environment = {"PATH": "/usr/bin:/bin", "VIADUCT_AGENT": agent.path, "LD_LIBRARY_PATH": os.path.join(folder, "lib"),
                   "VIADUCT_PROVIDER_PATH": os.path.join(folder, "lib/viaduct")}
    done = users.run_as(users.VICTIM, [os.path.join(folder, "adversary_agent_open"), str(seconds)], environment, seconds + 60)
    times = []
    for line in done.stdout.splitlines():
        result, milliseconds = line.split()
        if result != "0":
            raise users.Failure("VipOpenNic returned %s after %s ms" % (result, milliseconds))
        times.append(float(milliseconds) / 1000)
    if done.returncode != 0 or not times:
        raise users.Failure("the victim ended with %d: %s" % (done.returncode, done.stderr))
    return times


def judge(folder, agent, flood, quiet, seconds):
    before = users.held_by(agent.pid)
    with contextlib.ExitStack() as attackers:
        for user in (users.ATTACKER, users.ACCOMPLICE)[:2 if flood is be_silent else 1]:
            attackers.enter_context(users.attacker(flood, agent.path, user=user))
        times = opens(folder, agent, seconds)
        memory, threads, files = users.held_by(agent.pid)
    typical, worst = users.slowest_of_twenty(times), max(times)
    print("%-24s %5d opens, 95 of 100 within %7.1f ms, worst %7.1f ms; agent %d KiB, %d threads, %d files" %
          (flood.__name__, len(times), typical * 1e3, worst * 1e3, memory, threads, files), flush=True)
    if not agent.alive():
        raise users.Failure("the agent has ended")
    if worst > users.LATEST or typical > 10 * quiet + SLOWER:
        raise users.Failure("%s: the victim waits too long (%.1f ms without it)" % (flood.__name__, quiet * 1e3))
    if threads > MOST_THREADS or memory - before[0] > MOST_MEMORY:
        raise users.Failure("%s: the agent holds too much" % flood.__name__)
    # The attacker is dead; what he had goes, and what hangs is woken.
    if not users.eventually.holds(lambda: users.held_by(agent.pid)[2] <= before[2] + 8, [agent.pid], 30):
        raise users.Failure("%s: %d files stay behind, %d before" % (flood.__name__, users.held_by(agent.pid)[2], before[2]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", default="", help="name of one flood")
    options = parser.parse_args()
    if os.geteuid() != 0:
        users.skip("needs root, to be three users")
    chosen = rows.chosen(flood.__name__ for flood in FLOODS if options.only in flood.__name__)
    folder = users.everybodys_copy(options.build)
    users.raise_files()
    agent = None
    failed = []
    try:
        shutil.copy(os.path.join(options.build, "tests/adversary/adversary_agent_open"), folder)
        agent = users.Agent(folder)
        opens(folder, agent, 0.2)
        quiet = users.slowest_of_twenty(opens(folder, agent, min(options.seconds, 2)))
        print("%-24s 95 of 100 within %.1f ms" % ("alone", quiet * 1e3), flush=True)
        for flood in FLOODS:
            if flood.__name__ not in chosen:
                continue
            try:
                judge(folder, agent, flood, quiet, options.seconds)
            except users.Failure as failure:
                print("FAILED: %s" % failure, flush=True)
                failed.append(flood.__name__)
    finally:
        if agent is not None:
            agent.end()
            agent.log.seek(0)
            sys.stdout.write(agent.log.read(2000))
        shutil.rmtree(folder, ignore_errors=True)
    rows.report(failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
