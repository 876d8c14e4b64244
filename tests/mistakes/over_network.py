#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The words of one end about a mistake reach the other end over the network, with the numbers that this end has sent itself, and with no
other number. Usage: over_network.py PROGRAM"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from eventually import run  # noqa: E402
from page import plain  # noqa: E402
from report.rows import chosen, report  # noqa: E402

CLOSED = "address 0x… length %d: memory handle … is not registered, has another protection tag than the VI, or was registered without %s"
WORDS = {
    "send.sum": "send: CS.Length is not the sum of the data segments",
    "send.handle": "send: a memory handle is not registered",
    "send.outside": "send: a segment is outside its memory handle",
    "send.ptag": "send: a memory handle has another protection tag than the VI",
    "receive.short": "receive: a message of 512 bytes met a shorter receive",
    "receive.none": "a message of 64 bytes met no posted receive",
    "receive.outside": "receive: a segment is outside its memory handle",
    "receive.control": "receive: Control has reserved bits, or an operation this queue does not take",
    "write.memory": "RDMA write: " + CLOSED % (64, "EnableRdmaWrite"),
    "write.vi": "RDMA write: address 0x… length 64: the VI of the target has no EnableRdmaWrite",
    "write.outside": "RDMA write: address 0x… length 64 is outside memory handle …",
    "write.unknown": "RDMA write: " + CLOSED % (64, "EnableRdmaWrite"),
    "write.ptag": "RDMA write: " + CLOSED % (64, "EnableRdmaWrite"),
    "write.immediate": "RDMA write: " + CLOSED % (64, "EnableRdmaWrite"),
    "read.memory": "RDMA read: " + CLOSED % (64, "EnableRdmaRead"),
    "read.vi": "RDMA read: address 0x… length 64: the VI of the target has no EnableRdmaRead",
    "atomic.memory": "atomic operation: " + CLOSED % (8, "EnableRdmaWrite and EnableRdmaRead"),
}


def main():
    names = chosen(WORDS)
    found = run([sys.argv[1], "--table", *names], 100)
    failed = list(names)
    for line in found.stdout.splitlines():
        name, _, text = line.split("\t")
        said = [plain(words) for words in re.findall(r"the peer says: (.*?)(?:; cure: | \|\| |$)", text)]
        if said == [WORDS[name]]:
            failed.remove(name)
        else:
            print("%s: instead of \"%s\" the peer says %s in: %s" % (name, WORDS[name], said, text))
    print("%d mistakes, %d with other words" % (len(names), len(failed)))
    report(failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
