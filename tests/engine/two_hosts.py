#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An MPI job between two hosts: two network namespaces joined by a veth pair, one rank in each, started by Hydra, whose
connection to a rank passes through `ip netns exec`: it takes them for one host, as it does two containers. Over tcp by the addresses of
the pair, over via on the udp provider, and
over via on the acenic provider with an af_packet port on each side. The answers are those of shared memory.

    two_hosts.py LIBRARY_FOLDER PROGRAM [acenic]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
library, program = sys.argv[1:3]
HYDRA = "mpiexec.mpich"
names = ["viaduct-mpi-%d-%d" % (os.getpid(), side) for side in (0, 1)]
faults = []


def command(*words):
    subprocess.run(words, check=True, capture_output=True)


def make_hosts(folder):
    for name in names:
        command("ip", "netns", "add", name)
    command("ip", "link", "add", "v0", "netns", names[0], "type", "veth", "peer", "name", "v0", "netns", names[1])
    with open(os.path.join(folder, "hosts"), "w", encoding="ascii") as hosts, \
            open(os.path.join(folder, "udp-hosts"), "w", encoding="ascii") as udp_hosts:
        for side, name in enumerate(names):
            command("ip", "-n", name, "address", "add", "10.87.3.%d/24" % (side + 1), "dev", "v0")
            command("ip", "-n", name, "link", "set", "v0", "mtu", "9000", "up")
            command("ip", "-n", name, "link", "set", "lo", "up")
            shown = subprocess.run(["ip", "-n", name, "link", "show", "v0"], capture_output=True, text=True, check=True).stdout
            hosts.write("%s host%d\n" % (re.search(r"link/ether (\S+)", shown).group(1), side))
            udp_hosts.write("0a:57:03:%02x:12:b8 host%d\n" % (side + 1, side))  # the same address, port 4792


def run(protocol, wrapper, folder, settings, nic=""):
    environment = {**os.environ, "LD_LIBRARY_PATH": library, "CMPI_PROTOCOL": protocol, **settings}
    agent = environment.get("VIADUCT_AGENT", "@viaduct-mpi-hosts")
    # An agent of its own for each run: one that lingers has the settings of the run before.
    rank = 'VIADUCT_AGENT="%s-%s-$PMI_RANK" exec %s %s' % (agent, protocol + nic, wrapper, program)
    try:
        done = subprocess.run([HYDRA, "-n", "2", "bash", "-c", rank], capture_output=True, text=True, timeout=120,
                              env=environment, cwd=folder)
    except subprocess.TimeoutExpired as late:
        print("FAILED  %s: still running after 120 s\n%s\n%s" % (protocol, late.stdout, late.stderr))
        faults.append(protocol)
        return None
    found = re.fullmatch(r"No Errors, digest ([0-9a-f]{16})\n", done.stdout)
    good = done.returncode == 0 and found
    what = protocol + (" on " + nic if nic else "") + (" between two hosts" if wrapper else "")
    print("%s %s" % ("ok     " if good else "FAILED ", what), flush=True)
    if not good:
        print(done.returncode, done.stdout, done.stderr)
        faults.append(protocol)
        return None
    return found.group(1)


if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which(HYDRA):
    print("SKIPPED: needs root, ip (package iproute2) and %s (package mpich)" % HYDRA)
    sys.exit(SKIPPED)
with tempfile.TemporaryDirectory() as work:
    try:
        make_hosts(work)
        inside = "ip netns exec %s$PMI_RANK" % names[0][:-1]
        answers = {run("shm", "", work, {}), run("tcp", inside, work, {}), run("tcp", inside, work, {"CMPI_TCP_INTERFACES": "v0"})}
        answers.add(run("via", inside, work, {
            "VIADUCT_UDP_INTERFACES": "auto", "VIADUCT_NAMES_DEFAULT_PROVIDER": "udp",
            "VIADUCT_HOSTS": os.path.join(work, "udp-hosts")}, "udp"))
        if "acenic" in sys.argv[3:]:
            answers.add(run("via", inside, work, {
                "VIADUCT_ACENIC_PORTS": "net_af_packet,iface=v0", "VIADUCT_ACENIC_MODE": "exclusive",
                "VIADUCT_NAMES_DEFAULT_PROVIDER": "acenic", "VIADUCT_HOSTS": os.path.join(work, "hosts")}, "acenic"))
        else:
            print("SKIPPED: via on acenic: the provider is not built")
        if len(answers) != 1:
            faults.append("answers")
            print("FAILED  the same answers from all", answers)
    except subprocess.CalledProcessError as denied:
        print("SKIPPED: no network namespaces here: %s" % denied.stderr.decode())
        sys.exit(SKIPPED)
    finally:
        for one in names:
            subprocess.run(["ip", "netns", "del", one], check=False, capture_output=True)
sys.exit(1 if faults else 0)
