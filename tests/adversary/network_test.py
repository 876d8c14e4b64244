#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A hostile network: two hosts talk over acenic, or over udp, a third one on the same switch sends frames of its own. Measured is the pair: do all
messages come back right, and how long do they take beside a time without an attack.

Without a key the attacker does not see the frames of others: it scans for connection ids, and forges frames with ids that it has been
given, but without the pass. With a key it sees all frames, and sends them again and changed.

    network_test.py --build DIR
"""
import argparse
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "acenic"))
from hosts import Failure, end, kind_of, outcome, run  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import Late, communicated, eventually, holds  # noqa: E402
from report import rows  # noqa: E402

ETHERTYPE, ALL = 0x88B5, 3  # what comes to a port of a bridge is shown to sockets for all types only
VERSION, HEADER = 2, 40
SEND, RESET, DISCONNECT, DISCONNECTED, KEEP_ALIVE, ACKNOWLEDGE = 32, 18, 16, 17, 19, 20
FIELDS = {SEND: 16, RESET: 0, DISCONNECT: 8, DISCONNECTED: 0, KEEP_ALIVE: 32, ACKNOWLEDGE: 32}
AT_ONCE, PER_SECOND = 20, 100  # answers to frames of no connection: docs/wire-format.md
REQUESTS = 4792  # udp.port
MARK = b"\xfd"  # what viaduct-udpd passes on begins so
NAMES = {RESET: "reset", DISCONNECTED: "disconnected"}


def table():
    out = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ 0x82F63B78 if byte & 1 else byte >> 1
        out.append(byte)
    return out


TABLE = table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def frame(kind, destination, source, key=0, sequence=0, acknowledge=0, flags=0, body=None):
    """One of ours, with a good check: any host can make it."""
    body = bytes(FIELDS[kind]) if body is None else body
    head = struct.pack(">BBHIIIIIQHH", VERSION, kind, flags, destination, source, sequence, acknowledge, 0, key, len(body), 0)
    return head + struct.pack(">I", crc32c(head + bytes(4) + body)) + body


def resealed(data, **changes):
    """A frame that was seen, with other fields."""
    names = ("version", "kind", "flags", "destination", "source", "sequence", "acknowledge", "credit", "key", "length", "zero")
    fields = dict(zip(names, struct.unpack(">BBHIIIIIQHH", data[:36])))
    fields.update(changes)
    head = struct.pack(">BBHIIIIIQHH", *(fields[name] for name in names))
    body = data[HEADER:HEADER + fields["length"]]
    return head + struct.pack(">I", crc32c(head + bytes(4) + body)) + body


class Wire:
    """A raw socket on an interface of this network namespace."""

    def __init__(self, interface, ethertype=ETHERTYPE):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ethertype))
        self.socket.bind((interface, ethertype))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        self.socket.setblocking(False)

    def send(self, target, origin, data):
        packet = (target + origin + struct.pack(">H", ETHERTYPE) + data).ljust(60, b"\0")
        for _ in range(100):
            try:
                return self.socket.send(packet)
            except (BlockingIOError, OSError):
                time.sleep(0.0005)  # sleeps: the queue of the interface is full
        return 0

    def heard(self):
        """Frames that have come: (to, from, frame)."""
        while True:
            try:
                packet = self.socket.recv(1 << 16)
            except (BlockingIOError, OSError):
                return
            if len(packet) >= 14 + HEADER and packet[12:14] == struct.pack(">H", ETHERTYPE):
                yield packet[:6], packet[6:12], packet[14:]


def checksum(data):
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def frames_of(datagram):
    """A raw socket sees a train of frames that were sent at once as one datagram: all have the size of the first, the last may be
    shorter."""
    each = len(datagram)
    if datagram[0] == VERSION:
        each = min(each, HEADER + struct.unpack(">H", datagram[32:34])[0])
    while datagram:
        if len(datagram[:each]) >= HEADER:
            yield datagram[:each]
        datagram = datagram[each:]


class UdpWire(Wire):
    """Frames in datagrams. An end is an Ethernet address, an IPv4 address and a port."""
    IPV4 = struct.pack(">H", 0x0800)

    def send(self, target, origin, data):
        udp = origin[10:12] + target[10:12] + struct.pack(">HH", 8 + len(data), 0)  # no checksum
        head = struct.pack(">BBHHHBB", 0x45, 0, 28 + len(data), 0, 0x4000, 64, 17)
        ends = origin[6:10] + target[6:10]
        packet = target[:6] + origin[:6] + self.IPV4 + head + struct.pack(">H", checksum(head + ends)) + ends + udp + data
        for _ in range(100):
            try:
                return self.socket.send(packet.ljust(60, b"\0"))
            except (BlockingIOError, OSError):
                time.sleep(0.0005)  # sleeps: the queue of the interface is full
        return 0

    def heard(self):
        while True:
            try:
                packet = self.socket.recv(1 << 16)
            except (BlockingIOError, OSError):
                return
            if len(packet) >= 42 + HEADER and packet[12:15] == self.IPV4 + b"\x45" and packet[23] == 17:
                for data in frames_of(packet[42:struct.unpack(">H", packet[16:18])[0] + 14]):
                    yield packet[:6] + packet[30:34] + packet[36:38], packet[6:12] + packet[26:30] + packet[34:36], data


WIRES = {"acenic": (Wire, ETHERTYPE), "udp": (UdpWire, ALL)}


def answers_from(wire, target):
    return [(data[1], struct.unpack(">I", data[8:12])[0]) for _, origin, data in wire.heard() if origin == target]


def answers_before_the_last(wire, target, own, last):
    """The kinds of all answers to frames that were sent before. An id of no connection, `last`, is asked after them, and
    frames of one sender are answered in their order."""
    came = []

    def is_answered():
        came.extend(answers_from(wire, target))
        return any(origin == last for _, origin in came)
    wire.send(target, own, frame(KEEP_ALIVE, last, 1, 12345))
    eventually("the answer to the last frame", is_answered)
    return [kind for kind, origin in came if origin != last]


def scan(wire, what):
    """Every generation of the first link index, as far as a host can guess where to look; then ids that there are, and that there
    are not, side by side."""
    target, own = what["target"], what["own"]
    base = frame(KEEP_ALIVE, 0, 1, 1)
    flip = []  # what each bit of the generation does to the check
    for bit in range(16):
        flip.append(crc32c(base[:36] + bytes(4) + base[40:]) ^
                    crc32c(base[:4] + struct.pack(">I", 1 << (16 + bit)) + base[8:36] + bytes(4) + base[40:]))
    plain = struct.unpack(">I", base[36:40])[0]
    began, answered = time.monotonic(), []
    for generation in range(1, 0x10000):
        check = plain
        for bit in range(16):
            if generation >> bit & 1:
                check ^= flip[bit]
        wire.send(target, own, base[:4] + struct.pack(">I", generation << 16 | what["index"]) + base[8:36] +
                  struct.pack(">I", check) + base[40:])
        if generation % 512 == 0:
            answered += answers_from(wire, target)
    time.sleep(0.1)  # sleeps: what comes later is not counted
    answered += answers_from(wire, target)
    took = time.monotonic() - began
    alike = {}
    for name, destination in (("known", what["id"]), ("unknown", what["id"] ^ 0x400000), ("nowhere", what["id"] + 77)):
        time.sleep(2.0 * AT_ONCE / PER_SECOND)  # sleeps: the allowance of answers grows with time
        answers_from(wire, target)
        for kind in (KEEP_ALIVE, SEND, DISCONNECT, RESET):
            wire.send(target, own, frame(kind, destination, 1, 12345))
            wire.send(target, what["peer"], frame(kind, destination, what["peer_id"], 12345))
        # What is answered to the peer's address goes there; the peer ignores it.
        alike[name] = sorted(NAMES.get(kind, str(kind)) for kind in answers_before_the_last(wire, target, own, what["id"] + 99))
    return {"answers": len(answered), "kinds": sorted({NAMES.get(kind, str(kind)) for kind, _ in answered}), "seconds": took,
            "alike": alike}


def forge(wire, what):
    """Frames as from the peer, with its ids and numbers, and any pass but the right one."""
    until, count = time.monotonic() + what["seconds"], 0
    dice = random.Random(24)
    while time.monotonic() < until:
        for kind in (RESET, SEND, DISCONNECT, DISCONNECTED, ACKNOWLEDGE):
            key = dice.choice((0, 1, dice.getrandbits(64)))
            body = struct.pack(">IIII", 0, 0, 56, 0) + b"HOSTILE!" * 7 if kind == SEND else None
            sequence = (what["sequence"] + dice.randrange(-2, 40)) & 0xFFFFFFFF
            wire.send(what["target"], what["peer"], frame(kind, what["id"], what["peer_id"], key, sequence, 0, 2 | 4, body))
            count += 1
        time.sleep(0.001)  # sleeps: the pace of the attack
    return {"forged": count}


def replay(wire, what):
    """Frames that were seen, once more, and as other kinds with the numbers of now, with and without their tag."""
    until, count = time.monotonic() + what["seconds"], 0
    seen = [bytes.fromhex(text) for text in what["seen"]]
    dice = random.Random(24)
    while time.monotonic() < until:
        data = dice.choice(seen)
        sequence = struct.unpack(">I", data[12:16])[0]
        for forged in (data, resealed(data, kind=RESET, length=0), resealed(data, kind=DISCONNECTED, length=0),
                       resealed(data, flags=2 | 4), resealed(data, sequence=(sequence + dice.randrange(1, 400)) & 0xFFFFFFFF)):
            wire.send(what["target"], what["peer"], forged)
            count += 1
        time.sleep(0.001)  # sleeps: the pace of the attack
    return {"forged": count}


def noise(wire, what):
    """What is no frame, at the port of the program and at the one that requests come to: bytes at random, frames cut short, what
    viaduct-udpd passes on over loopback."""
    until, count = time.monotonic() + what["seconds"], 0
    dice = random.Random(24)
    requests = what["target"][:10] + struct.pack(">H", REQUESTS)
    while time.monotonic() < until:
        for target in (what["target"], requests):
            good = frame(KEEP_ALIVE, what["id"], what["peer_id"])
            for data in (dice.randbytes(dice.randrange(1400)), good[:dice.randrange(len(good))], MARK + dice.randbytes(dice.randrange(200)),
                         MARK, b""):
                wire.send(target, dice.choice((what["own"], what["peer"])), data)
                count += 1
        time.sleep(0.001)  # sleeps: the pace of the attack
    return {"sent": count}


def attack(text):
    what = json.loads(text)
    for name in ("target", "own", "peer"):
        what[name] = bytes.fromhex(what[name])
    kind, ethertype = WIRES[what["over"]]
    attacks = {"scan": scan, "forge": forge, "replay": replay, "noise": noise}
    print(json.dumps(attacks[what["attack"]](kind("v0", ethertype), what)))
    return 0


def listen(text):
    """What the switch sees of the pair: for the test, which must know what is to be guessed, and for an attacker that sees it too."""
    what = json.loads(text)
    wire, seen, ends = WIRES[what["over"]][0](what["interface"], ALL), [], ("", "")

    def all_seen():
        nonlocal ends
        for target, origin, data in wire.heard():
            length = struct.unpack(">H", data[32:34])[0]
            if target.hex().startswith(what["target"]) and origin.hex().startswith(what["peer"]) and data[0] == VERSION and \
                    data[1] >= DISCONNECT and length + HEADER <= len(data):
                seen.append(data[:HEADER + length].hex())
                ends = target.hex(), origin.hex()
        return len(seen) >= what["most"]
    holds(all_seen, limit=what["seconds"])
    print(json.dumps({"seen": seen, "target": ends[0], "peer": ends[1]}))
    return 0


def network(over):
    """Host 2 is the attacker's. The switch does not learn from its frames, so that those of others do not go there."""
    class Network(kind_of(over)):
        def __init__(self):
            super().__init__(3, mtu=1500)

        def make_links(self):
            super().make_links()
            run("ip", "-n", self.switch, "link", "set", "p2-0", "type", "bridge_slave", "learning", "off", "flood", "on")

        def end(self, host):
            """Where frames of a host come from, without the port, which its program has."""
            ethernet = self.ethernet(host, 0).replace(":", "")
            return ethernet if self.provider == "acenic" else ethernet + socket.inet_aton(self.ip(host, 0)).hex()

        def script(self, space, option, what):
            return subprocess.Popen(["ip", "netns", "exec", space, sys.executable, os.path.abspath(__file__), option,
                                     json.dumps(dict(what, over=self.provider))], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True)

    return Network()


def said(process, limit=90):
    try:
        out, err = communicated(process, limit)
    except Late as late:
        raise Failure(str(late)) from None
    if process.returncode != 0:
        raise Failure("the attack failed: %s" % err)
    return json.loads(out)


class Pair:
    """vipping on two hosts, a message each five milliseconds."""

    def __init__(self, hosts, program, level):
        self.hosts, self.program, self.level = hosts, program, level
        self.server = hosts.start(1, program, "--server", "-q", "-r", level)

    def ping(self, seconds):
        return self.hosts.start(0, self.program, "hostb", "-j", "-c", int(seconds * 200), "-i", "0.005", "-w", "5000", "-r", self.level)

    def result(self, client, what):
        try:
            out, err = communicated(client, 60)
        except Late as late:
            raise Failure("%s, %s: %s" % (what, self.level, late)) from None
        if client.returncode != 0:
            raise Failure("%s, %s: the pair was disturbed\n%s%s" % (what, self.level, out, err))
        shown = json.loads(out)
        if shown["lost"] or shown["damaged"] or shown["error"]:
            raise Failure("%s, %s: %s" % (what, self.level, out))
        return shown["round_trip_us"]["p50"]


# Both ends, the attacker and the switch share the processors of a small machine: a factor alone says little of a few microseconds.
def check_time(what, calm, attacked):
    if attacked > 20 * calm + 5000:
        raise Failure("%s: half of the messages take more than %.0f us, and %.0f us without an attack" % (what, attacked, calm))
    print("%-60s good, round trip %.0f us, calm %.0f us" % (what, attacked, calm), flush=True)


def sniff(hosts, most, seconds=60.0):
    """Frames from host 0 to host 1."""
    return said(hosts.script(hosts.switch, "--listen", {"interface": "p0-0", "seconds": seconds, "most": most, "target": hosts.end(1),
                                                        "peer": hosts.end(0)}))


def under(hosts, pair, name, calm, attacks, seconds):
    client = pair.ping(seconds)
    try:
        shown = sniff(hosts, 100)
        seen = shown["seen"]
        if not seen:
            raise Failure("the switch sees nothing of the pair")
        last = bytes.fromhex(seen[-1])
        destination, source, sequence = struct.unpack(">III", last[4:16])
        own = hosts.end(2) + ("" if hosts.provider == "acenic" else "1000")
        what = {"target": shown["target"], "own": own, "peer": shown["peer"], "id": destination, "peer_id": source,
                "index": destination & 0xFFFF, "sequence": sequence, "seconds": 1.0, "seen": []}
        told = []
        for kind in attacks:
            if kind == "replay":
                what["seen"] = seen
            told.append(said(hosts.script(hosts.names[2], "--attack", dict(what, attack=kind))))
        check_time(name, calm, pair.result(client, name))
        return told
    finally:
        end([client])


def check_scan(shown):
    most = AT_ONCE + PER_SECOND * (shown["seconds"] + 1)
    if shown["answers"] > most:
        raise Failure("a scan of all ids got %d answers in %.1f s" % (shown["answers"], shown["seconds"]))
    if set(shown["kinds"]) - {"reset"}:
        raise Failure("a scan got answers of the kinds %s" % shown["kinds"])
    alike = shown["alike"]
    if not alike["known"] == alike["unknown"] == alike["nowhere"]:
        raise Failure("an id that there is can be told from others: %s" % alike)
    print("a scan of 65,535 ids: %d answers in %.1f s; ids that there are and are not get %s" %
          (shown["answers"], shown["seconds"], alike["known"]), flush=True)


def rows_over(over):
    """(name, whether both hosts have a key, level) of each row."""
    for keyed, attacks in ((False, "ids are scanned, frames forged"), (True, "with a key, frames seen and sent again")):
        for level in ("unreliable", "delivery"):
            yield "%s, %s, %s" % (over, attacks, level), keyed, level


def set_key(hosts):
    key = os.path.join(hosts.folder, "key")
    with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write("%032x\n" % random.getrandbits(128))
    hosts.set("auth_key_file", key)


def judge(hosts, program, name, keyed, level):
    forged = ("forge", "noise") if hosts.provider == "udp" else ("forge",)
    pair = Pair(hosts, program, level)
    try:
        calm = pair.result(pair.ping(0.5), "calm")
        if keyed:
            under(hosts, pair, name, calm, ("replay", "forge"), 3.5)
        elif level == "delivery":
            told = under(hosts, pair, name, calm, ("scan", *forged), 5.0 + len(forged) - 1)
            check_scan(told[0])
        else:
            under(hosts, pair, name, calm, forged, 2.5 + len(forged) - 1)
    finally:
        end([pair.server])


def test(build, over, chosen, failed):
    """Adds the names of the rows that fail to `failed`."""
    program = os.path.join(build, "bin", "vipping")
    with network(over) as hosts:
        has_key = False
        for name, keyed, level in rows_over(over):
            if name not in chosen:
                continue
            if keyed and not has_key:
                set_key(hosts)
                has_key = True
            try:
                judge(hosts, program, name, keyed, level)
            except Failure as failure:
                print("FAILED: %s: %s" % (name, failure), flush=True)
                failed.append(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build")
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    parser.add_argument("--listen", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        return attack(options.attack)
    if options.listen:
        return listen(options.listen)
    kinds = ["udp"]
    if os.path.exists(os.path.join(options.build, "lib", "viaduct", "acenic.so")):
        kinds.insert(0, "af_packet")
    else:
        print("over acenic: SKIPPED, it was not built (DPDK)")
    chosen = rows.chosen(name for over in kinds for name, _, _ in rows_over(over))
    failed = []
    for over in kinds:
        if not any(name in chosen for name, _, _ in rows_over(over)):
            continue
        code = outcome(lambda over=over: test(os.path.abspath(options.build), over, chosen, failed))
        if code != 0:
            return 1 if failed else code
    rows.report(failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
