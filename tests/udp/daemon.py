#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""viaduct-udpd, which passes requests on to the programs of a host: several programs behind one address are told apart, its death
costs no program anything, and where it cannot have its port programs are told why.

    daemon.py --bin DIR --vipinfo PROGRAM
"""
import argparse
import os
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "acenic"))
from hosts import Failure, Loopback, end, finish, outcome  # noqa: E402

from eventually import Late, communicated, eventually  # noqa: E402

TIMEOUT = 20


def daemons(hosts):
    """The process ids of the daemons that serve these hosts."""
    shown = subprocess.run(["pgrep", "-f", "^viaduct-udpd --address " + hosts.network.replace(".", "[.]")], capture_output=True, text=True,
                           check=False).stdout
    return [int(word) for word in shown.split()]


def until(what, holds):
    try:
        eventually(what, holds, limit=TIMEOUT)
    except Late as late:
        raise Failure(str(late)) from None


def pair(hosts, programs, number, meanwhile=lambda: None):
    """A server on host b and a client on host a."""
    server = hosts.start(1, os.path.join(programs, "via_many2one"), "-s", "-n", 1, "-w", 1)
    try:
        until("viaduct-udpd is there", lambda: daemons(hosts))
        meanwhile()
        client = hosts.start(0, os.path.join(programs, "via_many2one"), "-c", "hostb", "-i", 0, "-m", 50, "-b", 3000)
        try:
            finish(client, "client %d" % number, r"client 0: 50 messages answered\n")
        finally:
            end([client])
        finish(server, "server %d" % number, r"1 clients, 50 messages, [0-9]+ bytes, all in order\n")
    finally:
        end([server])


def alltoall_of_one_host(hosts, programs):
    """Four programs behind one address: each request reaches the program that it is for."""
    ranks = [hosts.start(0, os.path.join(programs, "via_alltoall"), "-r", r, "-n", 4, "-k", 6, "-l", "r", "-j", 1, *["hosta"] * 4)
             for r in range(4)]
    try:
        for r, rank in enumerate(ranks):
            finish(rank, "rank %d of four on one address" % r, r"rank %d of 4: 18 messages, [0-9]+ bytes, all sums right\n" % r)
    finally:
        end(ranks)
    print("four programs, one address  good", flush=True)


def killed(hosts, programs):
    def kill():
        old = daemons(hosts)
        for process in old:
            os.kill(process, signal.SIGKILL)
        until("another viaduct-udpd", lambda: set(daemons(hosts)) - set(old))

    pair(hosts, programs, 1, kill)
    print("killed under a server       good", flush=True)


def port_taken(hosts, programs):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((hosts.ip(1, 0), 4792))
        hosts.settings["VIADUCT_LOG"] = "error"
        server = hosts.start(1, os.path.join(programs, "via_many2one"), "-s", "-n", 1, "-w", 1)
        try:
            _, said = communicated(server, TIMEOUT)
        finally:
            end([server])
            del hosts.settings["VIADUCT_LOG"]
    if "UDP port %s:4792 cannot be had" % hosts.ip(1, 0) not in said or "udp.port" not in said:
        raise Failure("a taken port is not told:\n" + said)
    print("port taken                  good", flush=True)


def listed(hosts, vipinfo):
    said = finish(hosts.start(0, vipinfo), "vipinfo", r"(.|\n)*")
    if "udp0" not in said or hosts.ip(0, 0) not in said:
        raise Failure("vipinfo does not show udp0 at %s:\n%s" % (hosts.ip(0, 0), said))
    print("vipinfo                     good", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the via_* programs")
    parser.add_argument("--vipinfo", required=True)
    options = parser.parse_args()
    programs = os.path.abspath(options.bin)

    def run():
        with Loopback() as hosts:
            listed(hosts, os.path.abspath(options.vipinfo))
            port_taken(hosts, programs)
            until("viaduct-udpd has left", lambda: not daemons(hosts))
            alltoall_of_one_host(hosts, programs)
            killed(hosts, programs)

    return outcome(run)


if __name__ == "__main__":
    sys.exit(main())
