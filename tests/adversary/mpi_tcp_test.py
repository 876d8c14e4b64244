#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Another user of the machine against an MPI job over tcp whose ranks find to each other late: bursts of 300 connections to each port
on which a rank listens, some silent, some that say anything, some that repeat the first bytes of a rank's call as they were recorded on
the wire. Measured is the job: it ends well, and about as soon as alone. Of what was recorded, no two handshakes have anything in
common but the names of the ranks: a secret in it would be the same each time."""
import argparse
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import holds  # noqa: E402

SKIPPED = 77
HYDRA = "mpiexec.mpich"
OTHER_USER = 4242
RANKS = 3
BURST = 300
HEADER = 16  # magic, version, two ranks
MAGIC = re.compile(rb"TCP\d")
faults = []


def expect(name, condition, seen=""):
    print(("ok      " if condition else "FAILED  ") + name, flush=True)
    if not condition:
        print(seen, flush=True)
        faults.append(name)


def skip(why):
    print("SKIPPED: " + why)
    sys.exit(SKIPPED)


class Recorder:
    """The first bytes that callers send to the ports, as a host that sees the network has them."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.bind(("lo", 0))
        self.socket.setblocking(False)
        self.said = {}  # (caller's port, port) -> what it said

    def look(self):
        while True:
            try:
                frame, (_, _, kind, *_) = self.socket.recvfrom(65536)
            except BlockingIOError:
                return
            if kind == socket.PACKET_OUTGOING or len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[23] != 6:
                continue
            tcp = 14 + (frame[14] & 15) * 4
            source, target = struct.unpack_from("!HH", frame, tcp)
            length = 14 + struct.unpack_from("!H", frame, 16)[0]
            payload = frame[tcp + (frame[tcp + 12] >> 4) * 4:length]
            if payload and (source, target) not in self.said:
                self.said[source, target] = payload

    def hellos(self):
        return {ports: said for ports, said in self.said.items() if MAGIC.match(said)}


def listening_ports(name):
    """Of the processes of that name."""
    inodes = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.basename(os.readlink(f"/proc/{pid}/exe")) != name:
                continue
            for fd in os.listdir(f"/proc/{pid}/fd"):
                found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
                if found:
                    inodes.add(found.group(1))
        except OSError:
            continue
    ports = set()
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in table.readlines()[1:]:
            fields = line.split()
            # The launcher's own, which ranks inherit, take calls for all addresses.
            if fields[3] == "0A" and fields[9] in inodes and not fields[1].startswith("00000000"):
                ports.add(int(fields[1].split(":")[1], 16))
    return ports


def attack(ports, recorder):
    """In a process of its own, until it is killed."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (16384, 16384))
    os.setgroups([])
    os.setgid(OTHER_USER)
    os.setuid(OTHER_USER)
    held = []
    while True:
        recorder.look()
        recorded = {}
        for (_, target), said in recorder.hellos().items():
            recorded.setdefault(target, []).append(said)
        for port in ports:
            for i in range(BURST):
                one = socket.socket()
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
                try:
                    if i % 3 == 1:
                        one.send(os.urandom(64))
                    elif i % 3 == 2 and port in recorded:
                        one.send(recorded[port][i % len(recorded[port])])
                except OSError:
                    pass
                held.append(one)
        while len(held) > 4 * BURST * len(ports):
            held.pop(0).close()
        time.sleep(0.5)  # sleeps: the pace of the attack


def run(folder, hostile):
    """Exit code, output, seconds, what was recorded."""
    name = "late%d%s" % (os.getpid(), "h" if hostile else "a")
    program = os.path.join(folder, name)
    shutil.copy(os.path.join(arguments.build, "tests/engine/jobs/late"), program)
    environment = dict(os.environ, CMPI_PROTOCOL="tcp", CMPI_ON_DEMAND="1",
                       LD_LIBRARY_PATH=os.path.join(arguments.build, "lib/cmpi/lib"))
    recorder = Recorder()
    begun = time.monotonic()
    job = subprocess.Popen([HYDRA, "-n", str(RANKS), program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env=environment)
    attacker = 0
    try:
        # Until it has the addresses of all others a rank listens on each interface.
        holds(lambda: len(listening_ports(name)) == RANKS or job.poll() is not None, [job.pid], 20)
        ports = listening_ports(name)
        expect("each rank listens on a port", len(ports) == RANKS, ports)
        if hostile:
            attacker = os.fork()
            if attacker == 0:
                try:
                    attack(ports, Recorder())
                finally:
                    os._exit(1)
        late = not holds(lambda: recorder.look() or job.poll() is not None, [job.pid], 60)
        if late:
            job.kill()
        out, errors = job.communicate()
        recorder.look()
        if hostile:
            expect("the other user was there all the while", os.waitpid(attacker, os.WNOHANG)[0] == 0)
    finally:
        if attacker:
            os.kill(attacker, signal.SIGKILL)
            os.waitpid(attacker, 0)
    return 124 if late else job.returncode, out, errors, time.monotonic() - begun, recorder.hellos()


parser = argparse.ArgumentParser()
parser.add_argument("--build", required=True)
arguments = parser.parse_args()
if os.geteuid() != 0:
    skip("only root can become another user and see the frames of lo")
if not shutil.which(HYDRA):
    skip(f"no {HYDRA} (package mpich) on this machine")
if not os.path.exists(os.path.join(arguments.build, "tests/engine/jobs/late")):
    skip("the MPI library is not built")
try:
    Recorder()
except OSError as reason:
    skip(f"no frames of lo to be seen: {reason}")

with tempfile.TemporaryDirectory() as folder:
    code, out, errors, alone, said = run(folder, hostile=False)
    expect("alone the job ends well", code == 0 and out.startswith("No Errors"), (code, out, errors))
    expect("the ranks' calls were recorded", len(said) >= RANKS, said)
    windows = {}
    for ports, hello in said.items():
        for at in range(HEADER, len(hello) - 7):
            windows.setdefault(hello[at:at + 8], set()).add(ports)
    shared = {window: ports for window, ports in windows.items() if len(ports) > 1}
    expect("no bytes come twice in the handshakes of a job", not shared, shared)
    for attempt in range(2):
        code, out, errors, took, _ = run(folder, hostile=True)
        os.unlink(os.path.join(folder, "late%dh" % os.getpid()))
        expect(f"beside another user the job ends well, {took:.1f} s (alone {alone:.1f} s)",
               code == 0 and out.startswith("No Errors"), (code, out, errors))
        expect("and in about the same time", took < 2 * alone + 10, took)
sys.exit(1 if faults else 0)
