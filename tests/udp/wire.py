# SPDX-License-Identifier: BSD-2-Clause
"""A cable with faults between two network namespaces: two veth pairs whose inner ends a process of its own joins, frame by frame, with
rules for what it loses, changes or answers by itself. Needs nothing of the kernel but packet sockets."""
import ctypes
import fcntl
import os
import select
import socket
import struct
import sys

ETH_P_ALL = 3
SIOCETHTOOL = 0x8946
# ETHTOOL_SRXCSUM, STXCSUM, SSG, STSO, SGSO, SGRO: a frame is on this cable what it would be on a real one.
OFFLOADS = (0x15, 0x17, 0x19, 0x1F, 0x24, 0x2C)
UDP, TCP = 17, 6


def without_offloads(interface):
    """The kernel computes checksums and cuts segments itself."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in OFFLOADS:
            value = bytearray(struct.pack("II", command, 0))
            address = ctypes.addressof(ctypes.c_char.from_buffer(value))
            try:
                fcntl.ioctl(any_socket, SIOCETHTOOL, struct.pack("16sP", interface.encode(), address))
            except OSError:
                pass  # this kernel does not have that one


class Frame:
    """What the rules look at, of an Ethernet frame with IPv4."""

    def __init__(self, data):
        self.data = data
        self.is_ip = len(data) >= 34 and data[12:14] == b"\x08\x00"
        self.is_arp = len(data) >= 42 and data[12:14] == b"\x08\x06"
        self.protocol = data[23] if self.is_ip else None
        self.size = len(data) - 14
        at = 14 + (data[14] & 15) * 4 if self.is_ip else 0
        self.destination_port = int.from_bytes(data[at + 2:at + 4], "big") if self.protocol in (UDP, TCP) and len(data) >= at + 4 else None
        self.source_port = int.from_bytes(data[at:at + 2], "big") if self.destination_port is not None else None


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def changed_at(data, at, bytes_there):
    """The IP packet of that frame with other bytes at that place of it, and right checksums."""
    head = (data[14] & 15) * 4
    ip = bytearray(data[14:14 + int.from_bytes(data[16:18], "big")])
    ip[at:at + len(bytes_there)] = bytes_there
    ip[10:12] = b"\0\0"
    ip[10:12] = struct.pack(">H", checksum(bytes(ip[:head])))
    place = {UDP: head + 6, TCP: head + 16}.get(ip[9])
    if place is not None:
        ip[place:place + 2] = b"\0\0"
        pseudo = bytes(ip[12:20]) + struct.pack(">BBH", 0, ip[9], len(ip) - head)
        ip[place:place + 2] = struct.pack(">H", checksum(pseudo + bytes(ip[head:])) or 0xFFFF)
    return data[:14] + bytes(ip)


def prohibited(frame):
    """What a router says of that frame: by administration it goes no further (ICMP)."""
    ip = frame.data[14:14 + 28]
    said = b"\x03\x0d\0\0\0\0\0\0" + ip
    said = said[:2] + struct.pack(">H", checksum(said)) + said[4:]
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(said), 0, 0, 64, 1, 0) + ip[16:20] + ip[12:16]
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return frame.data[6:12] + frame.data[0:6] + b"\x08\0" + head + said


class Cable:
    """`rules`: words as "drop-udp-there", see faulty()."""

    def __init__(self, rules):
        self.rules = rules
        self.counts = {}
        self.mac_here = bytes(6)

    def number(self, name):
        """The N of "name=N"; None: there is no such rule."""
        return next((int(rule.split("=")[1]) for rule in self.rules if rule.startswith(name + "=")), None)

    def is_nth(self, rule, way, frame):
        """Of the UDP frames of that way, each N-th is, where there is a rule with that N."""
        every = self.number(rule + "-" + way)
        if every is None or frame.protocol != UDP:
            return False
        self.counts[rule, way] = self.counts.get((rule, way), 0) + 1
        return self.counts[rule, way] % every == 0

    def passes(self, frame, to_there):
        way = "there" if to_there else "here"
        udp = frame.protocol == UDP
        if frame.is_ip and "silent" in self.rules:
            return False
        if udp and "drop-udp-" + way in self.rules and 4792 not in (frame.destination_port, frame.source_port):
            return False
        port = self.number("drop-port-" + way)
        if udp and port is not None and frame.destination_port == port:
            return False
        most = self.number("mtu-" + way)
        if frame.is_ip and most is not None and frame.size > most and udp:
            return False
        if "refuse" in self.rules and frame.protocol == TCP:
            return False
        return not self.is_nth("lose", way, frame)

    def answers(self, frame, to_there):
        """To a question for an address (ARP): what a second machine says that has it (twin), or the host that is seen elsewhere
        (translate)."""
        if to_there and "translate" in self.rules:
            self.mac_here = frame.data[6:12]
        if to_there and "refuse" in self.rules and frame.protocol == TCP:
            return prohibited(frame)
        if not frame.is_arp or frame.data[20:22] != b"\0\1":
            return None
        asked = frame.data[38:42]
        if "twin" in self.rules and asked == socket.inet_aton("10.77.0.2"):
            mac = b"\x02\0\0\0\0\x77"
        elif "translate" in self.rules and not to_there and asked == socket.inet_aton("10.77.0.99"):
            mac = self.mac_here
        else:
            return None
        return frame.data[6:12] + mac + frame.data[12:20] + b"\0\2" + mac + frame.data[38:42] + frame.data[22:32]

    def changed(self, frame, to_there):
        """What arrives of it: once, as a rule."""
        way = "there" if to_there else "here"
        if "translate" in self.rules and frame.is_ip:
            return [changed_at(frame.data, 12 if to_there else 16, socket.inet_aton("10.77.0.99" if to_there else "10.77.0.1"))]
        if self.is_nth("damage", way, frame):
            last = int.from_bytes(frame.data[16:18], "big") - 1
            return [changed_at(frame.data, last, bytes([frame.data[14 + last] ^ 1]))]
        return [frame.data] * (2 if self.is_nth("twice", way, frame) else 1)


def faulty(ends, rules):
    """Joins the two interfaces until standard input ends. Rules: silent; drop-udp-WAY; drop-port-WAY=N; mtu-WAY=N; lose-WAY=N,
    damage-WAY=N, twice-WAY=N (each Nth UDP frame); twin; translate; refuse (TCP, by ICMP). WAY is there (from the first to the second) or
    here."""
    cable = Cable(rules)
    sockets = []
    for end in ends:
        without_offloads(end)
        one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        one.bind((end, ETH_P_ALL))
        one.setblocking(False)
        sockets.append(one)
    print("joined", flush=True)
    while True:
        for found in select.select([*sockets, sys.stdin], [], [])[0]:
            if found is sys.stdin:
                return
            to_there = found is sockets[0]
            try:
                data, where = found.recvfrom(1 << 16)
            except BlockingIOError:
                continue
            if where[2] == socket.PACKET_OUTGOING:
                continue
            frame = Frame(data)
            answer = cable.answers(frame, to_there)
            if answer:
                found.send(answer)
            if cable.passes(frame, to_there):
                for data in cable.changed(frame, to_there):
                    try:
                        sockets[to_there].send(data)
                    except OSError:
                        pass  # longer than that interface takes: lost, as by a switch


if __name__ == "__main__":
    sys.exit(faulty(sys.argv[1:3], sys.argv[3:]) or os.EX_OK)
