#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An interface that is added, changed and deleted while the agent runs: vipinfo lists its NIC of udp, and the other NICs keep their numbers.

    appears.py --vipinfo PROGRAM --vipkad PROGRAM [--user UID]
"""
import argparse
import contextlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "acenic"))
from hosts import Failure, end, finish, outcome, run, without_privileges  # noqa: E402
from reach import Unconfigured, opens  # noqa: E402

from eventually import Late, communicated, eventually  # noqa: E402
from unix_sockets import listens  # noqa: E402

ADDRESS, OTHER = "10.78.0.1", "10.78.0.2"


@contextlib.contextmanager
def agent(hosts, vipkad):
    """An agent of host a that stays: each vipinfo gets its answers from this process."""
    name = hosts.environment(0)["VIADUCT_AGENT"]
    process = hosts.start(0, vipkad, "--socket", name, "--linger-ms", "-1")
    try:
        eventually("vipkad listens", lambda: listens(name, process.pid), [process.pid])
        yield process
        if process.poll() is not None:
            raise Failure("the agent has ended with %d" % process.returncode)
    finally:
        end([process])


def nics(hosts, vipinfo):
    """The MTU of each NIC of udp, by its name."""
    shown = json.loads(finish(hosts.start(0, vipinfo, "--json"), "vipinfo", r"(.|\n)*"))
    return {nic["name"]: nic["native_mtu"] for nic in shown["nics"] if nic["name"].startswith("udp")}


def shows(hosts, vipinfo, process, what, expected):
    seen = {}

    def is_shown():
        seen["nics"] = nics(hosts, vipinfo)
        return seen["nics"] == expected

    try:
        eventually("vipinfo shows " + what, is_shown, [process.pid])
    except Late as late:
        raise Failure("%s; it shows %s, not %s" % (late, seen["nics"], expected)) from None
    print("%-28s good" % what, flush=True)


def reason(hosts, vipinfo):
    process = hosts.start(0, vipinfo, "udp:fresh")
    out, err = communicated(process, 30)
    if process.returncode != 1 or "NIC udp:fresh has vanished" not in err:
        raise Failure("vipinfo does not say that the NIC has vanished\n%s%s" % (out, err))
    print("the reason                   good", flush=True)


def appears(hosts, vipinfo, process):
    name, mtu = hosts.names[0], hosts.mtu

    def ip(*words):
        run("ip", "-n", name, *words)

    shows(hosts, vipinfo, process, "the NIC of the start", {"udp0": mtu})
    ip("link", "add", "fresh", "type", "veth", "peer", "name", "other")
    for interface in ("fresh", "other"):
        ip("link", "set", interface, "mtu", "1500", "up")
    ip("address", "add", ADDRESS + "/24", "dev", "fresh")
    shows(hosts, vipinfo, process, "an interface that was added", {"udp0": mtu, "udp1": 1500})
    opens(hosts, vipinfo, "udp:fresh", "udp1")
    opens(hosts, vipinfo, "udp:" + ADDRESS, "udp1")
    ip("link", "set", "fresh", "mtu", "1400")
    shows(hosts, vipinfo, process, "another MTU", {"udp0": mtu, "udp1": 1400})
    ip("address", "add", OTHER + "/24", "dev", "fresh")
    shows(hosts, vipinfo, process, "another address", {"udp0": mtu, "udp1": 1400, "udp2": 1400})
    ip("address", "del", OTHER + "/24", "dev", "fresh")
    ip("address", "del", hosts.ip(0, 0) + "/24", "dev", "v0")
    shows(hosts, vipinfo, process, "addresses that were deleted", {"udp1": 1400})
    ip("address", "add", hosts.ip(0, 0) + "/24", "dev", "v0")
    shows(hosts, vipinfo, process, "an address that came back", {"udp0": mtu, "udp1": 1400})
    ip("link", "del", "fresh")
    shows(hosts, vipinfo, process, "an interface that was deleted", {"udp0": mtu})
    opens(hosts, vipinfo, "udp:fresh", None)
    reason(hosts, vipinfo)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vipinfo", required=True)
    parser.add_argument("--vipkad", required=True)
    parser.add_argument("--user", type=int, help="all of it in a user namespace of that user")
    options = parser.parse_args()
    if options.user is not None:
        return without_privileges(options.user)

    def work():
        with Unconfigured(2, 1, mtu=1500) as hosts, agent(hosts, os.path.abspath(options.vipkad)) as process:
            appears(hosts, os.path.abspath(options.vipinfo), process)

    return outcome(work)


if __name__ == "__main__":
    sys.exit(main())
