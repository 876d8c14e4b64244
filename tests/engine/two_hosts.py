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
import shlex
import shutil
import subprocess
import sys
import tempfile

import namespaces

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402

SKIPPED = 77
library, program = sys.argv[1:3]
HYDRA = "mpiexec.mpich"
faults = []


def run(protocol, wrapper, folder, settings, nic=""):
    environment = {**os.environ, "LD_LIBRARY_PATH": library, "CMPI_PROTOCOL": protocol, **settings}
    agent = environment.get("VIADUCT_AGENT", "@viaduct-mpi-hosts")
    # An agent of its own for each run: one that lingers has the settings of the run before.
    rank = 'VIADUCT_AGENT="%s-%s-$PMI_RANK" exec %s %s' % (agent, protocol + nic, wrapper, shlex.quote(program))
    try:
        done = eventually.run([HYDRA, "-n", "2", "bash", "-c", rank], 120, env=environment, cwd=folder)
    except eventually.Late as late:
        print("FAILED  %s: %s\n%s\n%s" % (protocol, late, late.out, late.errors))
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
        with namespaces.Hosts(work) as hosts:
            inside = hosts.inside()
            answers = {run("shm", "", work, {}), run("tcp", inside, work, {}),
                       run("tcp", inside, work, {"CMPI_TCP_INTERFACES": "v0"})}
            answers.add(run("via", inside, work, hosts.settings("udp"), "udp"))
            if "acenic" in sys.argv[3:]:
                answers.add(run("via", inside, work, hosts.settings("acenic"), "acenic"))
            else:
                print("SKIPPED: via on acenic: the provider is not built")
            if len(answers) != 1:
                faults.append("answers")
                print("FAILED  the same answers from all", answers)
    except subprocess.CalledProcessError as denied:
        print("SKIPPED: no network namespaces here: %s" % denied.stderr.decode())
        sys.exit(SKIPPED)
sys.exit(1 if faults else 0)
