#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every setting of the table (core/config/config_keys.cpp) stands in its section of viaduct.toml(5), with the default that it has, and no
other stands there.  Usage: settings.py ROOT"""

import re
import sys

sys.dont_write_bytecode = True
from verdict import end, read, unnoticed  # noqa: E402

ROW = re.compile(r'\{"(\w+)",\s*"(\w+)",\s*"([^"]*)",\s*"([^"]*)"')
BOLD = re.compile(r"\*\*([a-z]\w*)\*\*(?: \(([^)]*)\))?")
ELSEWHERE = {"verbs"}  # sections whose keys are named here and described on a page of their own


def entries(section):
    """Key to what stands in brackets behind it: of lines that begin with one."""
    found = {}
    for line in section.splitlines():
        if line.startswith("**"):
            for key, brackets in BOLD.findall(line):
                found.setdefault(key, brackets)
    return found


def faults(table, page):
    sections = dict(re.findall(r"^# SECTION \[(\w+)\]\n(.*?)(?=^# |\Z)", page, re.MULTILINE | re.DOTALL))
    known = {}
    for section, key, _, fallback in ROW.findall(table):
        known.setdefault(section, {})[key] = fallback
    for section, keys in known.items():
        text = sections.get(section)
        if text is None:
            yield f"there is no section [{section}]"
            continue
        if section in ELSEWHERE:
            yield from (f"[{section}] {key} is not named" for key in keys if f"**{key}**" not in text)
            continue
        shown = entries(text)
        for key, fallback in keys.items():
            if key not in shown:
                yield f"[{section}] {key} is not described"
            elif (fallback or "empty") not in shown[key]:
                yield f"[{section}] {key} is said to be ({shown[key]}), and its default is {fallback or 'empty'}"
        yield from (f"[{section}] {key} is described, and there is no such setting" for key in shown if key not in keys)
    if sum(len(keys) for keys in known.values()) < 50:
        yield "the table cannot be read"


def main():
    table, page = read(sys.argv[1], "core/config/config_keys.cpp"), read(sys.argv[1], "man/viaduct.toml.5.md")
    found = list(faults(table, page))
    # A page with one thing wrong at a time is noticed.
    changes = [("**keepalive_ms**", "keepalive_ms"), ("(int, 50)", "(int, 51)"), ("**spin_us**", "**spin_ms**"),
               ("SECTION [mpi]", "SECTION [mpj]")]
    end(found + list(unnoticed(page, changes, lambda changed: faults(table, changed))))


if __name__ == "__main__":
    main()
