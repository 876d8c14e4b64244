#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two hosts without any setting: the names by which a NIC of udp is opened, the tools that open it by themselves for another host, and what a
program is told that uses the default NIC for one.

    reach.py --vipinfo PROGRAM --vipping PROGRAM --vipperf PROGRAM [--user UID]
"""
import argparse
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "acenic"))
from hosts import Failure, UdpNamespaces, end, finish, outcome, without_privileges  # noqa: E402

from eventually import communicated


class Unconfigured(UdpNamespaces):
    """The machines of a newcomer: two interfaces, no configuration. Host names are found in a hosts file."""

    def environment(self, host):
        environment = super().environment(host)
        del environment["VIADUCT_NAMES_DEFAULT_PROVIDER"]
        return environment

    def nics(self, _):
        return {}


def opens(hosts, vipinfo, name, nic):
    """What that name opens on host a; None: nothing."""
    process = hosts.start(0, vipinfo, name)
    out, err = communicated(process, 30)
    found = out.split()[0] if out else None
    if found != nic:
        raise Failure("%s opens %s, not %s\n%s%s" % (name, found, nic, out, err))
    print("%-28s %s" % (name, nic or "nothing"), flush=True)


def names(hosts, vipinfo):
    for name, nic in (("/dev/via_eth0", "paramnet0"), ("udp0", "udp0"), ("udp1", "udp1"), ("udp:v0", "udp0"), ("udp:v1", "udp1"),
                      ("udp:10.77.1.1", "udp1"), ("udp:v2", None), ("udp:10.77.0.2", None), ("host:localhost", "paramnet0"),
                      ("host:10.77.0.1", "paramnet0"), ("host:10.77.0.2", "udp0"), ("host:10.77.1.2", "udp1"), ("host:hostb", "udp0"),
                      ("host:192.0.2.77", "paramnet0")):
        opens(hosts, vipinfo, name, nic)
    hosts.settings["VIADUCT_NICS"] = "/dev/via_eth0=udp:v1,/dev/via_eth1=udp:v7,far=host:10.77.1.2"
    for name, nic in (("/dev/via_eth0", "udp1"), ("/dev/via_eth1", None), ("far", "udp1")):
        opens(hosts, vipinfo, name, nic)
    hosts.settings["VIADUCT_NAMES_FAR_PROVIDER"] = ""
    opens(hosts, vipinfo, "host:10.77.0.2", "paramnet0")
    hosts.settings.clear()


def ping(hosts, vipping):
    """A server that was told nothing, and clients that name a host."""
    server = hosts.start(1, vipping, "--server")
    try:
        for host, nic in ((0, "udp0"), (1, "paramnet0")):
            client = hosts.start(host, vipping, "-c", "3", "-i", "0.01", "-w", "5000", "10.77.0.2")
            finish(client, "vipping on host %d" % host, r"VIPPING 10.77.0.2 \S+ through %s: (.|\n)*3 messages sent, 3 answered(.|\n)*" % nic)
            print("vipping through %-12s good" % nic, flush=True)
        server.terminate()
        out, _ = communicated(server, 30)
        answering = re.findall(r"answering on (\S+)", out)
        if sorted(answering) != ["paramnet0", "udp0", "udp1"]:
            raise Failure("the server answers on %s\n%s" % (answering, out))
    finally:
        end([server])


def measure(hosts, vipperf):
    """The same of the tool that measures: its server serves one client after another, on whichever NIC it comes."""
    server = hosts.start(1, vipperf, "--server")
    try:
        for host, nic in ((0, "udp0"), (1, "paramnet0"), (0, "udp0")):
            client = hosts.start(host, vipperf, "-n", "50", "-w", "10000", "-j", "10.77.0.2")
            out = finish(client, "vipperf on host %d" % host, r"(.|\n)*")
            if json.loads(out)["nic"] != nic:
                raise Failure("vipperf goes through %s, not %s" % (json.loads(out)["nic"], nic))
            print("vipperf through %-12s good" % nic, flush=True)
    finally:
        end([server])


def told(hosts, vipping):
    """The default NIC cannot reach another host; the log says which one does."""
    hosts.settings["VIADUCT_LOG"] = "warn"
    client = hosts.start(0, vipping, "-d", "/dev/via_eth0", "-c", "1", "10.77.0.2")
    out, err = communicated(client, 30)
    if client.returncode == 0 or 'open the NIC "host:10.77.0.2"' not in err:
        raise Failure("nothing is said of the NIC that reaches the host\n%s%s" % (out, err))
    hosts.settings.clear()
    print("the log names the NIC        good", flush=True)


def doctor(hosts, vipinfo):
    out = finish(hosts.start(0, vipinfo, "--doctor"), "vipinfo --doctor", r"(.|\n)*")
    for wanted in (r"NIC udp0 +link up", r"socket buffers +net.core.rmem_max"):
        if not re.search(wanted, out):
            raise Failure("the doctor does not say %s\n%s" % (wanted, out))
    hosts.settings["VIADUCT_UDP_INTERFACES"] = "v0;v9;10.9.9.9"
    hosts.settings["VIADUCT_AGENT"] = "@viaduct-test-%s-doctor" % os.path.basename(hosts.folder)
    out = finish(hosts.start(0, vipinfo, "--doctor"), "vipinfo --doctor", r"(.|\n)*")
    for wanted in (r"there is no interface v9 with an IPv4 address", r"no interface of this network namespace has the address 10.9.9.9"):
        if not re.search(wanted, out):
            raise Failure("the doctor does not say %s\n%s" % (wanted, out))
    hosts.settings.clear()
    print("the doctor                   good", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vipinfo", required=True)
    parser.add_argument("--vipping", required=True)
    parser.add_argument("--vipperf", required=True)
    parser.add_argument("--user", type=int, help="all of it in a user namespace of that user")
    options = parser.parse_args()
    if options.user is not None:
        return without_privileges(options.user)
    vipinfo, vipping = os.path.abspath(options.vipinfo), os.path.abspath(options.vipping)

    def run():
        with Unconfigured(2, 2) as hosts:
            names(hosts, vipinfo)
            ping(hosts, vipping)
            measure(hosts, os.path.abspath(options.vipperf))
            told(hosts, vipping)
            doctor(hosts, vipinfo)

    return outcome(run)


if __name__ == "__main__":
    sys.exit(main())
