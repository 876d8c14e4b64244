#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""probes_test.py DOCUMENT HAVE_SDT LIBRARY...: each trace point that docs/tracing.md lists is in the library it names, with as
many arguments, and no library has one that is not listed. HAVE_SDT 0: the header was missing when this was built. A
LIBRARY without:NAME was not built."""
import re
import struct
import sys

SKIPPED = 77
NOTE_SDT = 3


def sections(data):
    """(name, offset, size) of a 64-bit ELF file."""
    assert data[:5] == b"\x7fELF\x02", "not a 64-bit ELF file"
    order = "<" if data[5] == 1 else ">"
    at, = struct.unpack_from(order + "Q", data, 0x28)
    size, count, names = struct.unpack_from(order + "HHH", data, 0x3A)
    rows = [struct.unpack_from(order + "IIQQQQ", data, at + i * size) for i in range(count)]
    strings = rows[names][4]
    for name, _, _, _, offset, length in rows:
        text = data[strings + name:data.index(b"\0", strings + name)].decode()
        yield order, text, offset, length


def probes(path):
    """{name: number of arguments} of the points of provider viaduct."""
    with open(path, "rb") as file:
        data = file.read()
    found = {}
    for order, name, at, length in sections(data):
        if name != ".note.stapsdt":
            continue
        end = at + length
        while at < end:
            name_bytes, desc_bytes, kind = struct.unpack_from(order + "III", data, at)
            desc = at + 12 + (name_bytes + 3) // 4 * 4
            if kind == NOTE_SDT and data[at + 12:at + 12 + name_bytes] == b"stapsdt\0":
                provider, probe, arguments = data[desc + 24:desc + desc_bytes].split(b"\0")[:3]
                if provider == b"viaduct":
                    found[probe.decode()] = len(arguments.split())
            at = desc + (desc_bytes + 3) // 4 * 4
    return found


def documented(path):
    """{library: {name: number of arguments}}"""
    listed = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = re.match(r"\| `(\w+)` \| (\w+) \| (.*) \|$", line)
            if row:
                name, library, arguments = row.groups()
                # "id, 1: this" are two, "process id of the agent; when" is one.
                listed.setdefault(library, {})[name] = arguments.split(";")[0].count(",") + 1
    return listed


def main():
    document, have_sdt, libraries = sys.argv[1], sys.argv[2] == "1", sys.argv[3:]
    if not have_sdt:
        print("SKIPPED: <sys/sdt.h> was not there when this was built (Debian package systemtap-sdt-dev)")
        return SKIPPED
    listed, failures = documented(document), 0
    if not listed:
        print("FAILED  no table in", document)
        failures += 1
    for path in libraries:
        if path.startswith("without:"):
            print(f"left out: {path[8:]}, which is not built here")
            listed.pop(path[8:], None)
            continue
        name = re.match(r"(\w+)", path.rsplit("/", 1)[-1]).group(1)
        wanted, there = listed.pop(name, {}), probes(path)
        if wanted == there:
            print(f"ok      {name}: {', '.join(sorted(there))}")
        else:
            failures += 1
            print(f"FAILED  {name}: documented {wanted}, found {there}")
    for name in listed:
        failures += 1
        print(f"FAILED  {name} is documented and was not given")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
