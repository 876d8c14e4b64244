#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the legacy programs between hosts over acenic: network namespaces joined by veth, an af_packet port in each, or two
processes joined by memif or vhost, where two are enough; or over udp: the same namespaces, or loopback.

    two_hosts.py --bin DIR [--over af_packet|memif|vhost|udp|loopback] [--mode exclusive|shared] [--mtu N] [--faults PLAN]
                       [--brief] [--user UID]
"""
import argparse
import os
import re
import socket
import sys
import time

from hosts import OVER, Failure, Loopback, end, finish, kind_of, outcome, without_privileges


def pair(hosts, what, server, client, server_says, client_says):
    """A server on one host, a client on the other; both must end well, in silence, and say what is expected."""
    began = time.monotonic()
    processes = [hosts.start(1, *server), hosts.start(0, *client)]
    try:
        finish(processes[1], what + " (client)", client_says)
        finish(processes[0], what + " (server)", server_says)
    finally:
        end(processes)
    print("%-28s good, %.1f s" % (what, time.monotonic() - began), flush=True)


def legacy(hosts, programs, levels, brief=False):
    def program(name):
        return os.path.join(programs, "via_" + name)

    sizes = "".join(r" +%d +[0-9.]+ +[0-9.]+\n" % (1 << k) for k in range(2, 18))
    for level in levels:
        pair(hosts, "pingpong " + level, [program("pingpong"), "-s"],
             [program("pingpong"), "-c", "hostb", "-n", 50, "-m", 1 << 17, "-r", level], r"server: done\n",
             r" +bytes +half trip \(us\) +MB/s\n" + sizes + r"data verified: OK\n")
    source, target = os.path.join(hosts.folder, "source"), os.path.join(hosts.folder, "target")
    with open(source, "wb") as file:
        file.write(os.urandom(3_000_001))
    for mode in (3,) if brief else (1, 2, 3):
        back = r"read back 3000001 bytes: same\n" if mode == 3 else ""
        pair(hosts, "rdmamove %d" % mode, [program("rdmamove"), "-s", "-o", target],
             [program("rdmamove"), "-c", "hostb", "-M", mode, "-r", "dr"[mode % 2], "-f", source],
             r"received 3000001 bytes, sum [0-9a-f]{8}\n", back + r"moved 3000001 bytes, sum [0-9a-f]{8}\n")
        with open(source, "rb") as one, open(target, "rb") as other:
            if one.read() != other.read():
                raise Failure("rdmamove %d: the moved file differs" % mode)
    if brief:
        return
    for level in "dr":
        pair(hosts, "threads " + level, [program("threads"), "-s", "-m", 100, "-r", level],
             [program("threads"), "-c", "hostb", "-m", 100, "-r", level],
             r"server: all answered, the client has left\n",
             r"client: 100 answers from handlers, 100 from queue handlers, 100 messages each way\n")
    pair(hosts, "many2one", [program("many2one"), "-s", "-n", 1, "-w", 1],
         [program("many2one"), "-c", "hostb", "-i", 0, "-m", 100, "-b", 9000],
         r"1 clients, 100 messages, [0-9]+ bytes, all in order\n", r"client 0: 100 messages answered\n")


def ranks(hosts, what, programs, says, environments=None):
    """One process on each host; all must end well and say what is expected of them."""
    began = time.monotonic()
    processes = [hosts.start(host, *program, **({"env": environments[host]} if environments else {}))
                 for host, program in enumerate(programs)]
    try:
        for rank, process in enumerate(processes):
            finish(process, "%s (rank %d)" % (what, rank), says(rank))
    finally:
        end(processes)
    print("%-28s good, %.1f s" % (what, time.monotonic() - began), flush=True)


def several(hosts, programs, count, levels):
    names = ["host" + chr(ord("a") + i) for i in range(count)]
    for job, level in enumerate(levels):
        ranks(hosts, "alltoall " + level,
              [[os.path.join(programs, "via_alltoall"), "-r", r, "-n", count, "-k", 12, "-l", level, "-j", job] + names
               for r in range(count)],
              lambda r: r"rank %d of %d: %d messages, [0-9]+ bytes, all sums right\n" % (r, count, 12 * (count - 1)))
    # Each rank calls the next one under the name of its own host, for which it therefore gets the next one's address.
    for job, level in enumerate("x" + levels):
        environments, logs = [], []
        for r in range(count):
            table = os.path.join(hosts.folder, "next-of-%d" % r)
            with open(table, "w", encoding="ascii") as file:
                file.write("%s %s\n" % (hosts.address((r + 1) % count, 0), socket.gethostname().split(".")[0]))
            environments.append({**hosts.environment(r), "VIADUCT_HOSTS": table})
            logs.append(os.path.join(hosts.folder, "ring-%d" % r))
        ranks(hosts, "ring " + level,
              [[os.path.join(programs, "via_ring"), "-r", r, "-n", count, "-k", 50, "-l", logs[r], "-j", job, "-x", level]
               for r in range(count)],
              lambda r: r"rank %d of %d starts\n" % (r, count), environments)
        for r in range(count):
            with open(logs[r], encoding="utf-8") as log:
                if log.read() != "rank %d of %d: 50 laps, token and sums right\n" % (r, count):
                    raise Failure("ring %s: rank %d has another log" % (level, r))


def enum(hosts, programs):
    nic = hosts.provider + "0"
    process = hosts.start(0, os.path.join(programs, "via_enum"), nic, "/dev/via_eth0")
    said = finish(process, "enum", r"(.|\n)*[1-9][0-9]* opened and closed\n")
    if not re.search("(?m)^%s: " % nic, said):
        raise Failure("enum: no word of %s\n" % nic + said)
    print("%-28s good" % "enum", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the via_* programs")
    parser.add_argument("--over", default="af_packet", choices=tuple(OVER))
    parser.add_argument("--mode", default="exclusive", choices=("exclusive", "shared"))
    parser.add_argument("--mtu", type=int, default=9000)
    parser.add_argument("--faults", default="", help="fault plan of every port")
    parser.add_argument("--brief", action="store_true", help="a ping-pong at one level and the move of a file")
    parser.add_argument("--user", type=int, help="loopback: that of the programs; udp: in a user namespace of that user")
    options = parser.parse_args()
    if options.user is not None and options.over == "udp":
        return without_privileges(options.user)
    programs = os.path.abspath(options.bin)
    levels = "r" if options.brief else "dr" if options.faults else "udr"  # at Unreliable a message may be lost, and these programs wait for each
    kind = kind_of(options.over)
    more = {"user": options.user} if kind is Loopback else {}
    kinds = [kind(mtu=options.mtu, **more)]
    if options.over not in ("memif", "vhost"):
        kinds.append(kind(3, mtu=options.mtu, **more))

    def run():
        for kind in kinds:
            with kind as hosts:
                hosts.set("faults", options.faults)
                if hosts.provider == "acenic":
                    hosts.set("mode", options.mode)
                if kind is kinds[0]:
                    legacy(hosts, programs, levels, options.brief)
                    enum(hosts, programs)
                elif not options.brief:
                    several(hosts, programs, 3, levels)

    return outcome(run)


if __name__ == "__main__":
    sys.exit(main())
