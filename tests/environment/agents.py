# SPDX-License-Identifier: BSD-2-Clause
"""Agents that a program may meet: a real one in surroundings of its own, and others on its address that are none."""
import os
import signal
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import holds  # noqa: E402

MAGIC, HELLO_ERROR, WELCOME = 0x4B414456, 101, 100
STATUS_VERSION = 14


def bound(name):
    """Whether a process has the abstract name, in the network namespace of the caller."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        return any(line.rstrip("\n").endswith(" " + name) for line in file)


def wait_bound(name, seconds, pids=()):
    """Whether a process has the abstract name within so many seconds of the running time of `pids`, or of this process."""
    return holds(lambda: bound(name), pids, seconds)


def message(asked, kind, payload, version=1):
    """An answer to what was asked: it repeats the ticket."""
    return struct.pack("=IHHI", MAGIC, version, kind, len(payload)) + asked[12:16] + payload


def impostor(mood, name):
    """Holds the name and behaves like no agent should. Never returns."""
    if mood == "foreign":
        os.setgid(4242)
        os.setuid(4242)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind("\0" + name[1:])
    if mood == "deaf":  # does not even listen
        signal.pause()
    listener.listen(64)
    if mood == "full":  # it takes no connection off its queue
        signal.pause()
    kept = []
    while True:
        peer, _ = listener.accept()
        kept.append(peer)
        if mood in ("silent", "foreign"):
            continue
        if mood == "closes":
            peer.close()
            continue
        pid = os.fork()
        if pid:
            continue
        talk(mood, peer)
        os._exit(0)


def talk(mood, peer):
    try:
        while asked := peer.recv(8192):
            if mood == "rubbish":
                peer.send(b"\xff" * 300)
            elif mood == "newer":
                peer.send(message(asked, HELLO_ERROR, struct.pack("=iHH240s", STATUS_VERSION, 7, 9, b"this agent speaks 7 to 9")))
                peer.close()
                return
            elif mood == "older":
                peer.send(message(asked, WELCOME, struct.pack("=HHHHII32s", 0, 0, 0, 0, os.getpid(), 0, b"0.0"), 0))
            elif mood == "late":
                signal.pause()
            elif mood == "welcomes":  # and then answers nothing
                peer.send(message(asked, WELCOME, struct.pack("=HHHHII32s", 1, 1, 1, 0, os.getpid(), 1000, b"1.0")))
                while peer.recv(8192):
                    pass
    except OSError:
        pass


MOODS = ("deaf", "full", "silent", "foreign", "closes", "rubbish", "newer", "older", "late", "welcomes")


class Agent:
    def __init__(self, row, name, vipkad, prefix, environment, output, pid_file):
        self.name = name
        if row.agent in MOODS:
            command = [sys.executable, os.path.abspath(__file__), row.agent, name]
        else:
            command = [*prefix, vipkad, "--socket", name, "--linger-ms", "20000"]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        with open(pid_file, "w", encoding="ascii") as file:
            file.write(str(self.process.pid))

    def ready(self, seconds):
        return wait_bound(self.name, seconds, [self.process.pid])


if __name__ == "__main__":
    impostor(sys.argv[1], sys.argv[2])
