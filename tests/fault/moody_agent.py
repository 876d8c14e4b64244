# SPDX-License-Identifier: BSD-2-Clause
"""An agent that goes wrong on purpose: stands between programs and a real vipkad until its mood changes. Used by moody_test.py."""
import array
import contextlib
import os
import random
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import eventually  # noqa: E402

MAGIC = 0x4B414456
HELLO, WELCOME, ERROR, DONE = 1, 100, 101, 102
OUT_OF_RESOURCES, VERSION = 3, 14
HEAD = struct.Struct("<IHHII")
ROOM = 16384
FULL = b"it has no descriptors left (raise its limit, ulimit -n)"
FLAWS = 0x7F  # core/agent/own_limits.hpp: all of them

# Mood: what it is to a new client; what becomes of those that it had.
MOODS = {
    "away": "listens no more, all connections closed",
    "stopped": "its queue is full and no connection is taken from it",
    "stopped-with-us": "stopped, and it has our connection",
    "closes": "takes connections and closes them",
    "silent": "takes connections and says nothing",
    "closes-after-hello": "greets and closes",
    "silent-after-hello": "greets and says nothing more",
    "silent-with-us": "answers no client, new or old",
    "rubbish": "answers with bytes that are no message",
    "rubbish-after-hello": "greets and answers with such bytes",
    "truncated": "the second half of each answer is missing",
    "wrong-type": "everything is done, whatever it was",
    "late": "answers after two seconds",
    "other-version": "speaks another version only",
    "full": "turns all clients away, with a reason",
    "full-with-flaws": "the same, reports worse limits than a client has, and stays though it has agreed to end",
    "full-and-silent": "the same, and says nothing to the request to end",
    "dies": "ends at each request",
}
KEEPS_OLD = {"stopped-with-us", "silent-with-us", "late", "truncated", "wrong-type"}


def name_of(address):
    return "\0" + address[1:]


def take(sock):
    data, ancillary, _, _ = sock.recvmsg(ROOM, socket.CMSG_SPACE(4 * 16))
    files = array.array("i")
    for level, kind, body in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            files.frombytes(body[: len(body) - len(body) % 4])
    return data, list(files)


def give(sock, data, files=()):
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
    sock.sendmsg([data], ancillary)
    for fd in files:
        os.close(fd)


def message(kind, ticket, body=b"", version=1):
    return HEAD.pack(MAGIC, version, kind, len(body), ticket) + body


def refusal(ticket, status, text, low=1, high=1, flaws=0):
    return message(ERROR, ticket, struct.pack("<iHH236sI", status, low, high, text, flaws))


def welcome(ticket):
    return message(WELCOME, ticket, struct.pack("<HHHHII32s", 1, 1, 1, 0, os.getpid(), 2000, b"moody"))


class MoodyAgent:
    """Listens at `address`, passes everything on to the agent at `real`, until turn(mood)."""

    def __init__(self, address, real):
        self.address, self.real, self.mood = address, real, None
        self.lock = threading.Lock()
        self.old = []  # (client, real) from before the turn
        self.kept = []
        self.listener = self.listen(128)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def listen(self, backlog):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)

        def is_bound():
            with contextlib.suppress(OSError):
                s.bind(name_of(self.address))
                return True
        # The thread that sits in accept() keeps the name for a moment.
        eventually("the name is free", is_bound)
        s.listen(backlog)
        return s

    def turn(self, mood):
        with self.lock:
            self.mood = mood
            old, self.old = self.old, []
        if mood not in KEEPS_OLD:
            for pair in old:
                for s in pair:
                    s.shutdown(socket.SHUT_RDWR)
        if mood == "away" or mood.startswith("stopped"):
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            if mood == "away":
                return
            self.listener = self.listen(0)
            while True:  # until its queue is full
                s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                s.setblocking(False)
                self.kept.append(s)
                try:
                    s.connect(name_of(self.address))
                except BlockingIOError:
                    return

    def accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            with self.lock:
                mood = self.mood
                if mood is None or mood in ("late", "truncated"):
                    real = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                    real.connect(name_of(self.real))
                    self.old.append((client, real))
                    threading.Thread(target=self.answers, args=(real, client), daemon=True).start()
            if mood is None or mood in ("late", "truncated"):
                self.requests(client, real)
            else:
                self.misbehave(client, mood)
        except OSError:
            pass
        finally:
            if self.mood not in ("silent", "silent-after-hello", "silent-with-us"):
                client.close()
            else:
                self.kept.append(client)

    def requests(self, client, real):
        while True:
            data, files = take(client)
            if not data:
                real.shutdown(socket.SHUT_RDWR)
                return
            mood = self.mood
            ticket = HEAD.unpack_from(data)[4]
            if mood == "stopped-with-us":
                threading.Event().wait()
            if mood == "silent-with-us":
                continue
            if mood == "wrong-type":
                give(client, message(DONE, ticket))
                continue
            give(real, data, files)

    def answers(self, real, client):
        try:
            while True:
                data, files = take(real)
                if not data:
                    return
                if self.mood == "late":
                    time.sleep(2)  # sleeps: the mood
                if self.mood == "truncated":
                    data = data[: max(8, len(data) // 2)]
                if self.mood in ("silent-with-us", "stopped-with-us", "wrong-type"):
                    continue
                give(client, data, files)
        except OSError:
            pass

    def misbehave(self, client, mood):
        if mood == "closes":
            return
        if mood == "full":
            give(client, refusal(1, OUT_OF_RESOURCES, FULL))
            return
        if mood == "rubbish":
            give(client, random.Random(7).randbytes(200))
        first = True
        while True:
            data, files = take(client)
            for fd in files:
                os.close(fd)
            if not data:
                return
            ticket = HEAD.unpack_from(data)[4]
            if mood == "rubbish" or (mood == "rubbish-after-hello" and not first):
                give(client, random.Random(ticket).randbytes(100))
            elif mood == "other-version":
                give(client, refusal(ticket, VERSION, b"client and agent speak no common version", 7, 9))
                return
            elif mood in ("silent", "silent-with-us"):
                pass
            elif mood == "wrong-type":
                give(client, message(DONE, ticket))
            elif mood.startswith("full"):
                if first:
                    give(client, refusal(ticket, OUT_OF_RESOURCES, FULL, flaws=FLAWS))
                elif mood == "full-with-flaws":
                    give(client, message(DONE, ticket))
                    return
            elif first:
                give(client, welcome(ticket))
                if mood == "closes-after-hello":
                    return
            elif mood == "dies":
                return
            first = False
