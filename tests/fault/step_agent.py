# SPDX-License-Identifier: BSD-2-Clause
"""An agent that dies, or stands still, at one step of a handshake: passes messages between programs and a real vipkad, in a
fixed order. Used by handshake_test.py."""
import os
import selectors
import socket
import threading
import time

from moody_agent import HEAD, give, name_of, take

REQUESTS = {7: "wait", 8: "request", 9: "peer", 10: "accept", 11: "confirm"}
ANSWERS = {101: "error", 102: "done", 107: "incoming", 108: "joined"}
LAST = {"done": 1}  # those that the agent has sent before these are passed on before them


class StepAgent:
    """Listens at `address`. `real`: the address of the agent that serves at first, and of the one that does after the death.
    `step`: the name of a message (wait, wait=incoming, peer1=joined, ...). `what`: "before" or "after": the agent dies before
    or after it has passed it on; "late": it passes it on, and what follows to the same client, `delay` seconds later.
    `backwards`: of two messages of one kind, that to peer2 comes first."""

    def __init__(self, address, real, step, what, delay=0.0, backwards=False):
        self.address, self.real, self.step, self.what, self.delay, self.backwards = address, list(real), step, what, delay, backwards
        self.names = {}  # (client, ticket): what it asked
        self.pairs = {}  # a client's socket: the real one, and the other way round
        self.peers = 0
        self.passed = []
        self.struck = False
        self.held = {}  # by client: (when, messages), in order
        self.changed = threading.Condition()
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(name_of(address))
        self.listener.listen(64)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.over = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def stop(self):
        self.over = True
        self.thread.join()
        for s in list(self.pairs):
            s.close()
        self.listener.close()

    def saw(self, name, seconds):
        """Whether the message was passed on, or the step was met, by then."""
        with self.changed:
            return self.changed.wait_for(lambda: name in self.passed or self.struck, seconds)

    def run(self):
        while not self.over:
            self.selector.select(0.02)
            self.release()
            batch = self.gather()
            for place, s, name, data, files in sorted(batch, key=self.order):
                if s in self.pairs:
                    self.deliver(s, name, data, files)
                else:  # the agent has died meanwhile
                    for fd in files:
                        os.close(fd)

    def order(self, message):
        place, _, name, _, _ = message
        peer = 0 if "peer" not in name else int(name.split("=")[0][-1]) * (-1 if self.backwards else 1)
        return (LAST.get(name.split("=")[-1], 0), peer if "=" in name else 0, place)

    def gather(self):
        """All that can be read now, until no more comes."""
        batch = []
        while True:
            ready = self.selector.select(0.002)
            if not ready:
                return batch
            for key, _ in ready:
                if key.fileobj is self.listener:
                    self.admit()
                    continue
                try:
                    data, files = take(key.fileobj)
                except OSError:
                    data, files = b"", []
                if not data:
                    self.part(key.fileobj)
                    continue
                batch.append((len(batch), key.fileobj, self.name(key.fileobj, data), data, files))

    def name(self, s, data):
        _, _, kind, _, ticket = HEAD.unpack_from(data)
        if kind in REQUESTS:
            name = REQUESTS[kind]
            if kind == 9:
                self.peers += 1
                name += str(self.peers)
            self.names[s, ticket] = name
            return name
        client = self.pairs.get(s)
        asked = self.names.get((client, ticket))
        return f"{asked}={ANSWERS.get(kind, kind)}" if asked else "-"

    def admit(self):
        client, _ = self.listener.accept()
        real = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        real.connect(name_of(self.real[0]))
        for a, b in ((client, real), (real, client)):
            self.pairs[a] = b
            self.selector.register(a, selectors.EVENT_READ)

    def part(self, s):
        other = self.pairs.pop(s, None)
        if other is None:
            return
        del self.pairs[other]
        self.held.pop(s, None)
        self.held.pop(other, None)
        for x in (s, other):
            self.selector.unregister(x)
            x.close()

    def deliver(self, s, name, data, files):
        to = self.pairs[s]
        strikes = name == self.step and not self.struck
        if strikes and self.what == "before":
            return self.die(files)
        if strikes and self.what == "late":
            self.note(None)
            self.held[to] = (time.monotonic() + self.delay, [])
        if to in self.held:
            self.held[to][1].append((data, files))
            return
        self.send(to, data, files)
        self.note(name)
        if strikes:
            self.die()

    def send(self, to, data, files):
        try:
            give(to, data, files)
        except OSError:
            self.part(to)

    def release(self):
        for to in [t for t, (when, _) in self.held.items() if time.monotonic() >= when]:
            for data, files in self.held.pop(to)[1]:
                if to in self.pairs:
                    self.send(to, data, files)

    def note(self, name):
        with self.changed:
            if name is None or (name == self.step and self.what != "late"):
                self.struck = True
            if name is not None:
                self.passed.append(name)
            self.changed.notify_all()

    def die(self, files=()):
        for fd in files:
            os.close(fd)
        self.note(None)
        for s in list(self.pairs):
            self.part(s)
        self.real.reverse()
        self.peers = 0
