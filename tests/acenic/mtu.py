#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Hosts whose interfaces take frames of different sizes: one end of 1500 bytes, or a bridge of 1500 between two ends of 9000. They
connect soon, messages of many frames arrive, and nothing that is too large holds up what is not. vipinfo says that frames were lost.

    mtu.py --bin DIR --vipinfo PROGRAM --vipping PROGRAM [--over af_packet|udp] [--user UID]
"""
import argparse
import os
import sys
import time

from hosts import Failure, end, kind_of, outcome, run, without_privileges

from eventually import communicated
from two_hosts import pair


def unlike(over, mtus, bridge=None):
    """Two hosts of which one has the other MTU, joined directly or by a bridge with an MTU of its own."""
    class Unlike(kind_of(over)):
        def make_links(self):
            super().make_links()
            for name, mtu in zip(self.names, mtus):
                run("ip", "-n", name, "link", "set", "v0", "mtu", str(mtu))
            if bridge is not None:
                for host in range(len(self.names)):
                    run("ip", "-n", self.switch, "link", "set", "p%d-0" % host, "mtu", str(bridge))

    return Unlike(2 if bridge is None else 3)


def doctor(hosts, vipinfo):
    process = hosts.start(0, vipinfo, "--doctor", hosts.provider + "0")
    try:
        out, err = communicated(process, 60)
    finally:
        end([process])
    if "has dropped" not in out:
        raise Failure("vipinfo --doctor says nothing of frames that were too large\n%s%s" % (out, err))


def shrinks(hosts, vipping):
    """The path becomes smaller than the messages under way: their connection ends with an error in its time, the next one works."""
    server = hosts.start(1, vipping, "--server", "-q")
    clients = [hosts.start(0, vipping, "hostb", "-b", 8000, "-c", 100000, "-i", "0.01", "-w", 20000)]
    try:
        # Only a connection that was made over the larger path has frames that no longer pass.
        if not any("seq=10 " in line for line in clients[0].stdout):
            raise Failure("vipping has ended: %s" % clients[0].stderr.read())
        run("ip", "-n", hosts.names[1], "link", "set", "v0", "mtu", "1500")
        began = time.monotonic()
        out, err = communicated(clients[0], 60)
        took = time.monotonic() - began
        if clients[0].returncode == 0 or not err:
            raise Failure("vipping should end with an error\n%s%s" % (out, err))
        clients.append(hosts.start(0, vipping, "hostb", "-q", "-b", 8000, "-c", 20, "-i", "0.001", "-w", 20000))
        out, err = communicated(clients[1], 60)
        if clients[1].returncode != 0:
            raise Failure("there is no connection over the smaller path\n%s%s" % (out, err))
    finally:
        end(clients + [server])
    print("a path that shrinks: told after %.1f s, the next connection works" % took, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the via_* programs")
    parser.add_argument("--vipinfo", required=True)
    parser.add_argument("--vipping", required=True)
    parser.add_argument("--over", default="af_packet", choices=("af_packet", "udp"))
    parser.add_argument("--user", type=int, help="udp: all of it in a user namespace of that user")
    options = parser.parse_args()
    if options.user is not None:
        return without_privileges(options.user)
    program = os.path.join(os.path.abspath(options.bin), "via_pingpong")
    sizes = "".join(r" +%d +[0-9.]+ +[0-9.]+\n" % (1 << k) for k in range(2, 16))

    def test():
        with unlike(options.over, (9000, 9000)) as hosts:
            shrinks(hosts, os.path.abspath(options.vipping))
        for mode in ("exclusive", "shared") if options.over == "af_packet" else ("udp",):
            for mtus, bridge in (((9000, 1500), None), ((1500, 9000), None), ((9000, 9000), 1500)):
                with unlike(options.over, mtus, bridge) as hosts:
                    if hosts.provider == "acenic":
                        hosts.set("mode", mode)
                    for level in "ur":
                        pair(hosts, "%s %s%s %s" % (mode, mtus, " over %d" % bridge if bridge else "", level),
                             [program, "-s"], [program, "-c", "hostb", "-n", 20, "-m", 1 << 15, "-r", level],
                             r"server: done\n",
                             r" +bytes +half trip \(us\) +MB/s\n" + sizes + r"data verified: OK\n")
                    if mtus == (9000, 1500) and mode != "shared":
                        doctor(hosts, os.path.abspath(options.vipinfo))

    return outcome(test)


if __name__ == "__main__":
    sys.exit(main())
