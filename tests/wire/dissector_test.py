#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds what tshark shows with our dissector against what the frames are.  Usage: dissector_test.py WIRE_CAPTURE LUA"""

import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
KINDS = {1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 18, 19, 20, 32, 33, 34, 35, 36, 37}
COLUMNS = ["kind", "source", "sequence", "acknowledge", "length"]


def dissect(lua, capture):
    fields = [a for c in COLUMNS for a in ("-e", "viaduct." + c)]
    command = ["tshark", "-n", "-X", "lua_script:" + lua, "-r", capture, "-T", "fields"]
    run = subprocess.run(command + fields + ["-e", "viaduct.total", "-e", "_ws.col.Info"],
                         capture_output=True, text=True, timeout=50, check=False)
    if run.returncode != 0:
        sys.exit(f"tshark failed: {run.stderr}")
    if "Lua" in run.stderr or "lua" in run.stderr:
        sys.exit(f"the dissector has a mistake: {run.stderr}")
    return [line.split("\t") for line in run.stdout.splitlines()]


def main():
    if not shutil.which("tshark"):
        print("SKIPPED: tshark is not installed (package tshark)")
        return SKIPPED
    program, lua = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        capture, listing = os.path.join(folder, "frames.pcap"), os.path.join(folder, "frames.txt")
        subprocess.run([program, capture, listing], check=True, timeout=30)
        with open(listing, encoding="ascii") as file:
            expected = [line.split() for line in file]
        shown = dissect(lua, capture)
    if len(shown) != len(expected):
        sys.exit(f"{len(expected)} frames, {len(shown)} shown")
    for number, (want, got) in enumerate(zip(expected, shown), 1):
        numbers = [str(int(text, 0)) if text else "-" for text in got[:5]]
        if numbers != want[:5] or (want[5] != "-" and got[5] != want[5]):
            sys.exit(f"frame {number}: is {want}, shown as {got}")
        if "Malformed" in got[6] or " seq " not in got[6]:
            sys.exit(f"frame {number}: info is {got[6]!r}")
    seen = {int(want[0]) for want in expected}
    if seen != KINDS:
        sys.exit(f"not every kind was in the capture: missing {sorted(KINDS - seen)}")
    print(f"{len(shown)} frames of {len(seen)} kinds as they are")
    return 0


sys.exit(main())
