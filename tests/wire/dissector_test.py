#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds what tshark shows with our dissector against what the frames are: one a packet, and in the packets of packets.py.

    dissector_test.py WIRE_CAPTURE LUA
"""

import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import packets  # noqa: E402
from eventually import run  # noqa: E402

SKIPPED = 77
KINDS = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 18, 19, 20, 32, 33, 34, 35, 36, 37}
COLUMNS = ["kind", "source", "sequence", "acknowledge", "length"]


def plain(lua, capture, listing):
    with open(listing, encoding="ascii") as file:
        expected = [line.split() for line in file]
    all_shown = list(packets.shown(lua, capture))
    if len(all_shown) != len(expected):
        sys.exit(f"{len(expected)} frames, {len(all_shown)} shown")
    for number, (want, (_, _, info, frames)) in enumerate(zip(expected, all_shown), 1):
        if len(frames) != 1 or len(info) != 1 or " seq " not in info[0]:
            sys.exit(f"packet {number}: {len(frames)} frames, info is {info!r}")
        numbers = [str(int(frames[0][name], 0)) for name in COLUMNS]
        if numbers != want[:5] or (want[5] != "-" and frames[0]["total"] != want[5]):
            sys.exit(f"frame {number}: is {want}, shown as {frames[0]}")
    seen = {int(want[0]) for want in expected}
    if seen != KINDS:
        sys.exit(f"not every kind was in the capture: missing {sorted(KINDS - seen)}")
    print(f"{len(all_shown)} frames of {len(seen)} kinds as they are")


def header_of(frame):
    if frame[0] == 0:
        return {"version": frame[2], "version_seen": frame[3]}
    return {"version": frame[0], "kind": frame[1], "destination": int.from_bytes(frame[4:8], "big"),
            "sequence": int.from_bytes(frame[12:16], "big"), "length": len(frame) - packets.HEADER}


def many(lua, capture, made):
    packets.write(made, [packet for packet, _ in packets.made_of(capture)])
    count = 0
    for number, ((_, wanted), (_, protocol, info, frames)) in enumerate(
            zip(packets.made_of(capture), packets.shown(lua, made), strict=True), 1):
        if (protocol == "VIADUCT") != bool(wanted) or not len(wanted) == len(info) == len(frames):
            sys.exit(f"packet {number} of {protocol}: {len(wanted)} frames, {len(frames)} shown, info is {info!r}")
        for frame, fields, line in zip(wanted, frames, info):
            want = header_of(frame)
            if {name: int(fields[name], 0) for name in want} != want:
                sys.exit(f"packet {number}: {want} is shown as {fields}")
            damaged = frame[0] == 2 and packets.crc32c(frame[:36] + bytes(4) + frame[40:]) != int.from_bytes(frame[36:40], "big")
            if damaged != line.endswith(" DAMAGED") or damaged != ("damaged" in fields):
                sys.exit(f"packet {number}: damaged is {damaged}, shown as {line!r}, {fields}")
        count += len(wanted)
    print(f"{count} frames in packets of several and at any port, and nothing else")


def main():
    if not shutil.which("tshark"):
        print("SKIPPED: tshark is not installed (package tshark)")
        return SKIPPED
    program, lua = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        capture, listing = os.path.join(folder, "frames.pcap"), os.path.join(folder, "frames.txt")
        run([program, capture, listing], 30, check=True)
        plain(lua, capture, listing)
        many(lua, capture, os.path.join(folder, "made.pcap"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
