#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Hosts whose interfaces take frames of different sizes: one end of 1500 bytes, or a bridge of 1500 between two ends of 9000. They
connect soon, messages of many frames arrive, and nothing that is too large holds up what is not. vipinfo says that frames were lost.

    mtu.py --bin DIR --vipinfo PROGRAM
"""
import argparse
import os
import sys

from hosts import Failure, Namespaces, end, outcome, run
from two_hosts import pair


class Unlike(Namespaces):
    """Two hosts of which one has the other MTU, joined directly or by a bridge with an MTU of its own."""

    def __init__(self, mtus, bridge=None):
        super().__init__(2 if bridge is None else 3)
        self.mtus, self.bridge = mtus, bridge

    def make_links(self):
        super().make_links()
        for name, mtu in zip(self.names, self.mtus):
            run("ip", "-n", name, "link", "set", "v0", "mtu", str(mtu))
        if self.bridge is not None:
            for host in range(len(self.names)):
                run("ip", "-n", self.switch, "link", "set", "p%d-0" % host, "mtu", str(self.bridge))


def doctor(hosts, vipinfo):
    process = hosts.start(0, vipinfo, "--doctor", "acenic0")
    try:
        out, err = process.communicate(timeout=60)
    finally:
        end([process])
    if "has dropped" not in out:
        raise Failure("vipinfo --doctor says nothing of frames that were too large\n%s%s" % (out, err))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the via_* programs")
    parser.add_argument("--vipinfo", required=True)
    options = parser.parse_args()
    program = os.path.join(os.path.abspath(options.bin), "via_pingpong")
    sizes = "".join(r" +%d +[0-9.]+ +[0-9.]+\n" % (1 << k) for k in range(2, 16))

    def test():
        for mode in ("exclusive", "shared"):
            for mtus, bridge in (((9000, 1500), None), ((1500, 9000), None), ((9000, 9000), 1500)):
                with Unlike(mtus, bridge) as hosts:
                    hosts.settings["VIADUCT_ACENIC_MODE"] = mode
                    for level in "ur":
                        pair(hosts, "%s %s%s %s" % (mode, mtus, " over %d" % bridge if bridge else "", level),
                             [program, "-s"], [program, "-c", "hostb", "-n", 20, "-m", 1 << 15, "-r", level],
                             r"server: done\n",
                             r" +bytes +half trip \(us\) +MB/s\n" + sizes + r"data verified: OK\n")
                    if mtus == (9000, 1500) and mode == "exclusive":
                        doctor(hosts, os.path.abspath(options.vipinfo))

    return outcome(test)


if __name__ == "__main__":
    sys.exit(main())
