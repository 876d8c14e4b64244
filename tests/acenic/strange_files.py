#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The engine process and clients that hand it files whose closing takes half a minute: it goes on at once, and they are turned away.

    strange_files.py --engine viaduct-acenicd

The file is a TCP socket with bytes that are not read and SO_LINGER: the process that closes it last waits. Stopped while the client sends
it and closes its own copy, the engine process is the last.
"""
import argparse
import array
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile

from hosts import Failure, outcome

import temporary
from eventually import RunningTime, holds

TIMEOUT = 5  # seconds; the files take thirty
MAGIC, VERSION = 0x54494732, 3  # providers/acenic/daemon/protocol.hpp


def lingering_socket():
    """And its other end, which takes nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    near.setblocking(False)
    try:
        while near.send(bytes(1 << 16)):
            pass
    except BlockingIOError:
        pass
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 30))
    return near, far


class Engine:
    def __init__(self, program, folder):
        self.name = "\0strange-files-%d" % os.getpid()
        self.port = "net_memif,socket=%s/pair,role=server,mac=02:00:00:00:00:02" % folder
        self.log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen([program, "--port", self.port, "--socket", "@" + self.name[1:], "--linger-ms", "-1",
                                         "--foreground"], stdout=self.log, stderr=self.log)

    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(TIMEOUT)

        def is_connected():
            with contextlib.suppress(ConnectionRefusedError):
                client.connect(self.name)
                return True
        if not holds(lambda: self.process.poll() is None and is_connected(), [self.process.pid], 20):
            self.log.seek(0)
            raise Failure("the engine process does not listen: " + self.log.read())
        return client

    def greet(self):
        """A client that has been welcomed."""
        client = self.connect()
        client.send(struct.pack("II256s", MAGIC, VERSION, self.port.encode()))
        answer = client.recv(4096)
        if len(answer) < 12 or struct.unpack_from("IIi", answer) != (MAGIC, VERSION, 0):
            raise Failure("no welcome but %r" % answer)
        return client

    def hand_over(self, client, message, files):
        self.process.send_signal(signal.SIGSTOP)
        client.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f.fileno() for f in files]))])
        for file in files:
            file.close()
        self.process.send_signal(signal.SIGCONT)


def is_closed(client):
    try:
        return client.recv(4096) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def run(options):
    with tempfile.TemporaryDirectory(dir=temporary.for_sockets()) as folder:
        engine = Engine(options.engine, folder)
        far_ends = []
        try:
            engine.greet().close()  # the port is open by now
            strange = {
                "no hello": (engine.connect, b"?", 1),
                "a hello with a file": (engine.connect, struct.pack("II256s", MAGIC, VERSION, engine.port.encode()), 1),
                "a segment that is none": (engine.greet, struct.pack("IIQ", MAGIC, 0, 1 << 20), 1),
                "many files": (engine.greet, struct.pack("IIQ", MAGIC, 0, 1 << 20), 20),
            }
            for what, (begin, message, count) in strange.items():
                client = begin()
                files, ends = zip(*(lingering_socket() for _ in range(count)))
                far_ends += ends
                engine.hand_over(client, message, files)
                if not is_closed(client):
                    raise Failure("%s: the engine process keeps its sender" % what)
                time_used = RunningTime([engine.process.pid])
                engine.greet().close()
                if time_used.running() > TIMEOUT:
                    raise Failure("%s: others had to wait %.1f s" % (what, time_used.wall()))
                print("%-28s good" % what, flush=True)
            if engine.process.poll() is not None:
                raise Failure("the engine process has ended")
        finally:
            engine.process.kill()
            for end in far_ends:
                end.close()
            engine.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", required=True, help="viaduct-acenicd")
    options = parser.parse_args()
    return outcome(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
