#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One-sided operations between two hosts (../engine/namespaces.py), over via on udp and acenic: every operation on every
window, and those that the NIC does on a target that computes.

    onesided_hosts_test.py LIBRARY_FOLDER PROGRAM_FOLDER NIC...
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "engine"))
import namespaces  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import Late, communicated  # noqa: E402

SKIPPED = 77
HYDRA = "mpiexec.mpich"
LIMIT = 150  # seconds; a NIC of DPDK takes ten to open where processors are busy
RUNS = [(2, "onesided_busy", "nic create allocate"), (2, "onesided_words", "apart"), (2, "onesided", "apart"),
        (4, "onesided_busy", "nic allocate")]
library, programs = sys.argv[1:3]
faults = 0


def run(hosts, nic, processes, program, arguments):
    environment = {**os.environ, "LD_LIBRARY_PATH": library, "CMPI_PROTOCOL": "", "CMPI_CONNECT_TIMEOUT": "60",
                   **hosts.settings(nic)}
    agent = "%s-%s-%d" % (environment.get("VIADUCT_AGENT", "@viaduct-onesided"), nic, os.getpid())
    rank = 'VIADUCT_AGENT="%s-$((PMI_RANK %% 2))" exec %s %s %s' % (
        agent, hosts.inside(), shlex.quote("%s/viaduct_mpi_%s" % (programs, program)), arguments)
    job = subprocess.Popen([HYDRA, "-n", str(processes), "bash", "-c", rank], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, env=environment, cwd=hosts.folder)
    try:
        output, _ = communicated(job, LIMIT)
    except Late as late:
        job.terminate()  # Hydra takes its processes with it
        output = "%s\n%s" % (job.communicate()[0], late)
    good = job.returncode == 0 and "No Errors" in output.splitlines()
    print("%s %s: %s %s, %d processes" % ("ok     " if good else "FAILED ", nic, program, arguments, processes))
    print(output, flush=True)
    return 0 if good else 1


if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare") or not shutil.which(HYDRA):
    print("SKIPPED: needs root, ip (package iproute2), unshare and %s (package mpich)" % HYDRA)
    sys.exit(SKIPPED)
with tempfile.TemporaryDirectory() as work:
    try:
        with namespaces.Hosts(work) as pair:
            pair.keep_apart()
            for one in sys.argv[3:]:
                for what in RUNS:
                    if one == "udp" or what == RUNS[0]:  # what differs between NICs
                        faults += run(pair, one, *what)
    except subprocess.CalledProcessError as denied:
        print("SKIPPED: no network namespaces here: %s" % denied.stderr.decode())
        sys.exit(SKIPPED)
sys.exit(1 if faults else 0)
