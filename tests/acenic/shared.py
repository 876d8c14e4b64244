#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Several programs on one acenic port: the shared mode. Two hosts are network namespaces joined by veth.

    shared.py --bin DIR --runner run.py [--suite PROGRAM [--rows NAME,... | --filter TESTS]] [--seconds N] [--only PART[,PART]]

Parts: legacy (the legacy programs, all processes on one port), hosts (between two ports), conformance (the suite, all
processes on one port), killed (eight programs on one port talk without a break while one of them is killed every second for N
seconds), stopped (engine processes and programs get no processor for a second, and nothing is lost), engine (the engine process is
killed), refused (what a program is told when it cannot have the port).
"""
import argparse
import os
import re
import signal
import socket
import sys
import threading
import time

import two_hosts
from conformance import ROWS, row_filter, row_names, suite
from hosts import Failure, Namespaces, end, finish, outcome

from eventually import Late, communicated, finished, holds

PARTS = ("legacy", "hosts", "conformance", "killed", "stopped", "engine", "refused")
STEADY = 8          # programs on the port
SEEN_WITHIN = 2     # seconds of running time: silence alone would take 10
GONE_WITHIN = 10    # seconds until the engine process has left by itself
STOPPED_FOR = 2.5   # seconds: more than a peer may be silent whose death no process would report, a quarter of what these may
ENGINES_STOPPED_FOR = 10.5  # both of them: more than any silence


class Shared(Namespaces):
    def __init__(self, mtu):
        super().__init__(2, mtu=mtu)
        self.settings["VIADUCT_ACENIC_MODE"] = "shared"

    def make(self):
        super().make()
        # Programs that look for their own host find the port of theirs.
        self.tables = []
        for host in range(2):
            self.tables.append(self.hosts + ".%d" % host)
            with open(self.hosts, encoding="ascii") as common, open(self.tables[host], "w", encoding="ascii") as own:
                own.write("%s %s\n%s" % (self.address(host, 0), socket.gethostname().split(".")[0], common.read()))

    def environment(self, host):
        return {**super().environment(host), "VIADUCT_HOSTS": self.tables[host]}

    def engines(self):
        """Engine processes of these hosts: by their network namespaces."""
        spaces = [os.stat("/var/run/netns/" + name).st_ino for name in self.names]
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    ours = file.read().split(b"\0")[0] == b"viaduct-acenicd"
                space = os.stat("/proc/%s/ns/net" % pid).st_ino
            except OSError:
                continue
            if ours and space in spaces:
                found[spaces.index(space)] = int(pid)
        return found


class Steady:
    """A program of steady.cpp; what it says is read as it comes."""

    def __init__(self, hosts, host, program, *words):
        self.name = " ".join(map(str, words))
        self.process = hosts.start(host, program, *words)
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.split())
        self.lines.append(["end", time.monotonic()])

    def said(self, word):
        return [float(line[1]) for line in self.lines if line[0] == word]

    def await_word(self, word, count=1, limit=20, also=()):
        """The time at which it said that for the count-th time. The limit is one of its running time, and that of `also`."""
        holds(lambda: len(self.said(word)) >= count or self.said("end"), [self.process.pid, *also], limit)
        if len(self.said(word)) < count:
            error = self.process.stderr.read() if self.said("end") else ""
            raise Failure("%s: no \"%s\" within %d s, but %s %s" % (self.name, word, limit, self.lines, error))
        return self.said(word)[count - 1]

    def finish(self):
        """Its number of messages; it must have lost nothing."""
        self.process.send_signal(signal.SIGTERM)
        try:
            finished(self.process, 20)
        except Late:
            raise Failure("%s does not end: %s" % (self.name, self.lines)) from None
        error = self.process.stderr.read()
        self.await_word("end")
        if self.process.returncode != 0 or error or not self.said("done"):
            raise Failure("%s: status %d, %s %s" % (self.name, self.process.returncode, self.lines, error))
        return int(self.said("done")[0])

    def kill(self):
        """With the time of it. The program is a child of `ip netns exec`, which has become it."""
        began = time.monotonic()
        self.process.kill()
        self.process.wait()
        return began


def legacy(hosts, options):
    began = time.monotonic()
    runner = hosts.start(0, sys.executable, options.runner, "--bin", options.bin, "--program", "all", "--repeat", options.repeat)
    finish(runner, "legacy", r"(.|\n)*", 300)
    print("%-28s good, %.1f s" % ("legacy, one port", time.monotonic() - began), flush=True)


def between(hosts, options):
    two_hosts.legacy(hosts, options.bin, "udr")
    two_hosts.enum(hosts, options.bin)


def conformance(hosts, options):
    if not options.suite:
        raise Failure("conformance needs --suite")
    arguments = ["--nic", "acenic0"]
    if options.filter:
        arguments.append("--gtest_filter=" + options.filter)
    elif options.rows:
        arguments.append(row_filter(options.rows))
    suite(hosts, options.suite, "conformance, one port", arguments)


def killed(hosts, options):
    """Clients 1 to 7 and a victim on host a, each with a server of its own on host b; host b's port has eight programs too."""
    program = os.path.join(options.bin, "acenic_steady")
    ends = []
    try:
        servers = [Steady(hosts, 1, program, "server", i) for i in range(STEADY)]
        ends += servers
        for server in servers:
            server.await_word("open")
        clients = [Steady(hosts, 0, program, "client", "hostb", i) for i in range(1, STEADY)]
        ends += clients
        for client in clients:
            client.await_word("connected")
        worst = 0.0
        for round_number in range(1, options.seconds + 1):
            victim = Steady(hosts, 0, program, "client", "hostb", 0)
            ends.append(victim)
            victim.await_word("connected")
            servers[0].await_word("connected", round_number)
            time.sleep(0.4 + 0.1 * (round_number % 5))  # sleeps: the victim is killed at another moment each time
            at = victim.kill()
            worst = max(worst, servers[0].await_word("lost", round_number, SEEN_WITHIN, hosts.engines().values()) - at)
        messages = [client.finish() for client in clients]
        if min(messages) < 20 * options.seconds:
            raise Failure("too little was said to tell anything: %s messages" % messages)
        lost = [server.name for server in servers[1:] if len(server.said("lost")) > 1]
        if lost:
            raise Failure("connections of others were lost: %s" % lost)
    finally:
        end([one.process for one in ends])
    print("%-28s good: %d killed, seen after %.0f ms at most, %d messages of the others, none lost" %
          ("killed", options.seconds, worst * 1000, sum(messages)), flush=True)


def stopped(hosts, options):
    """Two programs talk from port to port, two on one port; what is between them, or one of them, is without a processor."""
    program = os.path.join(options.bin, "acenic_steady")
    ends = []
    try:
        servers = [Steady(hosts, 1, program, "server", 1), Steady(hosts, 0, program, "server", 2)]
        ends += servers
        for server in servers:
            server.await_word("open")
        clients = [Steady(hosts, 0, program, "client", "hostb", 1), Steady(hosts, 0, program, "client", "hosta", 2)]
        ends += clients
        for client in clients:
            client.await_word("connected")
        time.sleep(0.3)  # sleeps: messages flow before the first stop
        engines = hosts.engines()
        for what, pids, how_long in (("the engine of one host", [engines[0]], STOPPED_FOR), ("the other", [engines[1]], STOPPED_FOR),
                                     ("both", list(engines.values()), ENGINES_STOPPED_FOR),
                                     ("a server", [servers[0].process.pid], STOPPED_FOR),
                                     ("a client", [clients[0].process.pid], STOPPED_FOR)):
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            try:
                time.sleep(how_long)  # sleeps: the stop
            finally:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
            time.sleep(0.5)  # sleeps: a loss would be reported
            lost = [one.name for one in ends if one.said("lost") or one.said("end")]
            if lost:
                raise Failure("%s stopped for %.1f s: lost by %s" % (what, how_long, lost))
        messages = [client.finish() for client in clients]
    finally:
        end([one.process for one in ends])
    print("%-28s good: five times, %d messages, none lost" % ("stopped", sum(messages)), flush=True)


def engine(hosts, options):
    """Both ends on host a; the engine process dies twice, programs are told and go on with another one."""
    program = os.path.join(options.bin, "acenic_steady")
    ends = []
    try:
        server = Steady(hosts, 0, program, "server", 1)
        ends.append(server)
        server.await_word("open")
        client = Steady(hosts, 0, program, "client", "hosta", 1)
        ends.append(client)
        for round_number in (1, 2):
            client.await_word("connected", round_number)
            time.sleep(0.3)  # sleeps: messages flow before the death
            os.kill(hosts.engines()[0], signal.SIGKILL)
            for one in (client, server):
                one.await_word("lost", round_number, SEEN_WITHIN)
                one.await_word("nic-died", round_number)
                one.await_word("open", round_number + 1)
        client.await_word("connected", 3)
        time.sleep(0.3)  # sleeps: messages flow over the new engine
        messages = client.finish()
    finally:
        end([one.process for one in ends])
    if not holds(lambda: not hosts.engines(), list(hosts.engines().values()), GONE_WITHIN):
        raise Failure("the engine process stays: %s" % hosts.engines())
    print("%-28s good: killed twice, %d messages" % ("engine", messages), flush=True)


def refused(hosts, options):
    """One program has the port for itself; others are told so, and what to do about it."""
    program = os.path.join(options.bin, "acenic_steady")
    exclusive = {**hosts.environment(0), "VIADUCT_ACENIC_MODE": "exclusive"}
    owner = hosts.start(0, program, "server", 1, env=exclusive)
    try:
        if not owner.stdout.readline().startswith("open"):
            raise Failure("the first program did not get the port")
        for mode in ("shared", "auto", "exclusive"):
            environment = {**hosts.environment(0), "VIADUCT_ACENIC_MODE": mode, "VIADUCT_LOG": "error"}
            other = hosts.start(0, program, "server", 2, env=environment)
            try:
                _, error = communicated(other, 30)
            except Late:
                raise Failure("%s: a second program hangs" % mode) from None
            finally:
                end([other])
            if other.returncode != 1 or not re.search(r"in use by another process.*; .*shared", error):
                raise Failure("%s: a second program says %d: %s" % (mode, other.returncode, error))
    finally:
        end([owner])
    print("%-28s good" % "refused", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the via_* programs and acenic_steady")
    parser.add_argument("--runner", required=True, help="run.py of the legacy programs")
    parser.add_argument("--suite", help="viaduct_conformance")
    parser.add_argument("--filter", help="of the suite, as GoogleTest has it")
    parser.add_argument("--rows", type=row_names, default=[], help="of the suite: %s" % ", ".join(ROWS))
    parser.add_argument("--mtu", type=int, default=9000)
    parser.add_argument("--seconds", type=int, default=8, help="programs killed; the long version is 60")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each legacy program")
    parser.add_argument("--only", default="legacy,hosts,killed,stopped,engine,refused")
    options = parser.parse_args()
    options.bin, options.runner = os.path.abspath(options.bin), os.path.abspath(options.runner)
    options.suite = options.suite and os.path.abspath(options.suite)
    parts = dict(zip(PARTS, (legacy, between, conformance, killed, stopped, engine, refused)))

    def run():
        for part in options.only.split(","):
            with Shared(options.mtu) as hosts:
                parts[part](hosts, options)

    return outcome(run)


if __name__ == "__main__":
    sys.exit(main())
