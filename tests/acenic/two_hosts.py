#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs legacy programs between two hosts over the acenic provider: two network namespaces joined by a veth pair, an
af_packet port in each. Then the conformance suite on one of them, where one process is enough.

    two_hosts.py --bin DIR [--conformance PROGRAM] [--mtu N]
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
# Needs a second process on the same port, or a fault plan; a port belongs to one process.
LEFT_OUT = "-*Fork.*:*Processes.*:*RemoteProcessKilled*:*Process*"


class Failure(Exception):
    pass


class Hosts:
    """Two namespaces, gone again at the end."""

    def __init__(self, mtu):
        self.names = ["viaduct-%d-%s" % (os.getpid(), side) for side in "ab"]
        self.folder = tempfile.mkdtemp(prefix="acenic-")
        self.hosts = os.path.join(self.folder, "hosts")
        self.made = []
        self.mtu = mtu

    def make(self):
        for name in self.names:
            run("ip", "netns", "add", name)
            self.made.append(name)
        a, b = self.names
        run("ip", "link", "add", "v0", "netns", a, "type", "veth", "peer", "name", "v0", "netns", b)
        with open(self.hosts, "w", encoding="ascii") as file:
            for name, host in zip(self.names, ("hosta", "hostb")):
                run("ip", "-n", name, "link", "set", "v0", "mtu", str(self.mtu), "up")
                shown = subprocess.run(["ip", "-n", name, "link", "show", "v0"], capture_output=True, text=True,
                                       check=True).stdout
                file.write("%s %s\n" % (re.search(r"link/ether (\S+)", shown).group(1), host))

    def remove(self):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, side, *command):
        environment = dict(os.environ)
        environment.update({
            "VIADUCT_AGENT": "@viaduct-test-acenic-%d-%d" % (os.getpid(), side),
            "VIADUCT_ACENIC_PORTS": "net_af_packet,iface=v0",
            "VIADUCT_NAMES_DEFAULT_PROVIDER": "acenic",
            "VIADUCT_HOSTS": self.hosts,
        })
        command = ["ip", "netns", "exec", self.names[side]] + [str(word) for word in command]
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, cwd=self.folder)


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


def finish(process, what, pattern, limit=60):
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise Failure("%s: still running after %d s\n%s%s" % (what, limit, out, err)) from None
    if process.returncode != 0 or err or not re.fullmatch(pattern, out):
        raise Failure("%s: exit status %d\n%s%s" % (what, process.returncode, out[-2000:], err[-2000:]))


def pair(hosts, what, server, client, server_says, client_says):
    """A server on one host, a client on the other; both must end well, in silence, and say what is expected."""
    began = time.monotonic()
    processes = [hosts.start(1, *server), hosts.start(0, *client)]
    try:
        finish(processes[1], what + " (client)", client_says)
        finish(processes[0], what + " (server)", server_says)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    print("%-28s good, %.1f s" % (what, time.monotonic() - began), flush=True)


def legacy(hosts, programs):
    def program(name):
        return os.path.join(programs, "via_" + name)

    sizes = "".join(r" +%d +[0-9.]+ +[0-9.]+\n" % (1 << k) for k in range(2, 18))
    for level in "udr":
        pair(hosts, "pingpong " + level, [program("pingpong"), "-s"],
             [program("pingpong"), "-c", "hostb", "-n", 50, "-m", 1 << 17, "-r", level], r"server: done\n",
             r" +bytes +half trip \(us\) +MB/s\n" + sizes + r"data verified: OK\n")
    source, target = os.path.join(hosts.folder, "source"), os.path.join(hosts.folder, "target")
    with open(source, "wb") as file:
        file.write(os.urandom(3_000_001))
    for mode in (1, 2, 3):
        back = r"read back 3000001 bytes: same\n" if mode == 3 else ""
        pair(hosts, "rdmamove %d" % mode, [program("rdmamove"), "-s", "-o", target],
             [program("rdmamove"), "-c", "hostb", "-M", mode, "-r", "dr"[mode % 2], "-f", source],
             r"received 3000001 bytes, sum [0-9a-f]{8}\n", back + r"moved 3000001 bytes, sum [0-9a-f]{8}\n")
        with open(source, "rb") as one, open(target, "rb") as other:
            if one.read() != other.read():
                raise Failure("rdmamove %d: the moved file differs" % mode)
    for level in "dr":
        pair(hosts, "threads " + level, [program("threads"), "-s", "-m", 100, "-r", level],
             [program("threads"), "-c", "hostb", "-m", 100, "-r", level],
             r"server: all answered, the client has gone\n",
             r"client: 100 answers from handlers, 100 from queue handlers, 100 messages each way\n")
    pair(hosts, "many2one", [program("many2one"), "-s", "-n", 1, "-w", 1],
         [program("many2one"), "-c", "hostb", "-i", 0, "-m", 100, "-b", 9000],
         r"1 clients, 100 messages, [0-9]+ bytes, all in order\n", r"client 0: 100 messages answered\n")


def conformance(hosts, program):
    began = time.monotonic()
    finish(hosts.start(0, program, "--nic", "acenic0", "--gtest_brief=1", "--gtest_filter=" + LEFT_OUT),
           "conformance", r"(.|\n)*\[  PASSED  \] (.|\n)*", 150)
    print("%-28s good, %.1f s" % ("conformance, one process", time.monotonic() - began), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the via_* programs")
    parser.add_argument("--conformance", help="the conformance suite's program")
    parser.add_argument("--mtu", type=int, default=9000)
    options = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("SKIPPED: network namespaces need root and the package iproute2")
        return SKIPPED
    hosts = Hosts(options.mtu)
    try:
        try:
            hosts.make()
        except subprocess.CalledProcessError as failed:
            print("SKIPPED: no network namespaces with a veth pair here: %s" % failed.stderr.decode().strip())
            return SKIPPED
        legacy(hosts, os.path.abspath(options.bin))
        if options.conformance:
            conformance(hosts, os.path.abspath(options.conformance))
    except Failure as failure:
        print(failure)
        return 1
    finally:
        hosts.remove()
    return 0


sys.exit(main())
