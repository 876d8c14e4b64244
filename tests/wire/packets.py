# SPDX-License-Identifier: BSD-2-Clause
"""Packets with frames in them as networks carry them beside the plain ones of wire_capture: trains that the kernel took in one piece, at
ports that the kernel chose, damaged, with something behind them; and packets of other programs, which hold none. And what tshark shows of
a capture."""
import os
import random
import struct
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402

PORT, TYPE, HEADER, VERSION_ANSWER = 4792, 0x88B5, 40, 72
MOST = 60000
PCAP = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def sealed(kind, rest, destination=0x10001, source=0x20002):
    """A frame with a good check, whatever is in it."""
    head = struct.pack(">BBHIIIIIQHHI", 2, kind, 0, destination, source, 7, 3, 0, 99, len(rest), 0, 0)
    return head[:36] + struct.pack(">I", crc32c(head + rest)) + rest


def version_answer(spoken, seen):
    data = bytes([0, 1, spoken, seen]) + bytes(4) + bytes(range(64))
    return data[:4] + struct.pack(">I", crc32c(data)) + data[8:]


def flipped(frame, bit):
    changed = bytearray(frame)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def ethernet(payload, kind=TYPE):
    return b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01" + struct.pack(">H", kind) + payload


def udp(payload, source, destination):
    length = 8 + len(payload)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + length, 0, 0x4000, 64, 17, 0, b"\x0a\0\0\x01", b"\x0a\0\0\x02")
    return ethernet(head + struct.pack(">HHHH", source, destination, length, 0) + payload, 0x0800)


def packets_of(path):
    with open(path, "rb") as file:
        data = file.read()
    at = len(PCAP)
    while at < len(data):
        kept = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16:at + 16 + kept]
        at += 16 + kept


def frames_of(path):
    """Of a capture of wire_capture: one frame a packet."""
    for packet in packets_of(path):
        at = 14 if packet[12:14] != b"\x08\0" else 42
        yield packet[at:at + HEADER + int.from_bytes(packet[at + 32:at + 34], "big")]


def trains_of(frames, chance):
    """All of them in their order, several in a packet."""
    train = []
    for frame in frames:
        if train and (sum(map(len, train)) + len(frame) > MOST or chance.random() < 0.15):
            yield train
            train = []
        train.append(frame)
    yield train


def foreign_payloads(frame, chance):
    """What other programs send that looks like a frame as far as that can be had, without its check."""
    yield b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01"
    for size in (0, 1, HEADER - 1, HEADER, VERSION_ANSWER, 1200):
        yield bytes(size)
    for kind in (1, 3, 20, 32, 33):
        for size in (HEADER, HEADER + 16, 200, 1400):
            body = bytearray(chance.randbytes(size))
            body[0:4] = bytes([2, kind, 0, 0])
            body[32:36] = struct.pack(">HH", size - HEADER, 0)
            yield bytes(body)
    for _ in range(20):
        yield flipped(frame, chance.randrange(8 * len(frame)))
    yield frame[:-1]
    yield b"\0\1\2\1" + chance.randbytes(VERSION_ANSWER - 4)


def made_of(capture):
    """Packets, each with the frames that have to be seen in it."""
    chance = random.Random(20261126)
    frames = list(frames_of(capture))
    for number, train in enumerate(trains_of(frames, chance)):
        ports = ((40000 + number, 50000), (50000, 40000 + number), (PORT, 40000), (40000, PORT))[number % 4]
        yield udp(b"".join(train), *ports), train
    one, two, three = frames[10], frames[11], frames[12]
    for bit in (8 * 37, 8 * 13 + 1):
        bad = flipped(two, bit)
        yield udp(one + bad + three, 40000, 50000), [one]
        yield udp(one + bad + three, 40000, PORT), [one, bad, three]
    yield udp(one + b"more", 40000, 50000), [one]
    yield udp(one + bytes(100), 40000, PORT), [one]
    yield ethernet(one + two + bytes(30)), [one, two]
    tag = struct.pack(">H", 77)
    yield ethernet(tag + struct.pack(">H", TYPE) + one, 0x8100), [one]
    yield ethernet(tag + b"\x81\0" + tag + udp(one + two, 40000, 50000)[12:], 0x88A8), [one, two]
    yield ethernet(tag, 0x8100), []
    for kind in (1, 4, 16, 20, 32, 33, 34, 35, 36, 37):
        for size in (0, 3, 7, 12):
            cut = sealed(kind, bytes(range(size)))
            yield udp(cut + one, 40000, 50000), [cut, one]
    unknown = sealed(200, b"of a later release")
    yield udp(unknown + one, PORT, 50000), [unknown, one]
    yield udp(unknown + one, 40000, 50000), []
    answers = [version_answer(2, 1), version_answer(3, 2)]
    yield udp(answers[0], 40000, 50000), answers[:1]
    yield udp(b"".join(answers) + one, 40000, 50000), [*answers, one]
    for payload in foreign_payloads(one, chance):
        yield udp(payload, 40000, 50000), []


def write(path, packets):
    """One each millisecond; when each was seen, as its second has it."""
    with open(path, "wb") as file:
        file.write(PCAP)
        for number, packet in enumerate(packets):
            file.write(struct.pack("<IIII", 1 + number // 1000, number % 1000 * 1000, len(packet), len(packet)) + packet)


def shown(lua, capture):
    """For each packet in tshark: time, protocol, what it says of each frame, and the fields of each frame by name."""
    def run(*form):
        done = eventually.run(["tshark", "-n", "-X", "lua_script:" + lua, "-r", capture, *form], 60, text=False)
        said = done.stderr.decode()
        if done.returncode != 0 or "lua" in said.lower():
            sys.exit("tshark has failed, or the dissector: " + said)
        return done.stdout.decode()

    columns = run("-T", "fields", "-e", "frame.time_epoch", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info").splitlines()
    tree = xml.etree.ElementTree.fromstring(run("-T", "pdml"))
    for line, packet in zip(columns, tree.iter("packet"), strict=True):
        time, protocol, info = line.split("\t")
        frames = [{field.get("name").removeprefix("viaduct."): field.get("show") for field in one.iter("field")}
                  for one in packet.findall("proto[@name='viaduct']")]
        yield float(time), protocol, info.split("; ") if protocol == "VIADUCT" else [], frames
