#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every setting of the table (core/config/config_keys.cpp) stands in its section of viaduct.toml(5), with the default that it has, and no
other stands there.  Usage: settings.py ROOT"""

import os
import re
import sys

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
    with open(os.path.join(sys.argv[1], "core/config/config_keys.cpp"), encoding="utf-8") as file:
        table = file.read()
    with open(os.path.join(sys.argv[1], "man/viaduct.toml.5.md"), encoding="utf-8") as file:
        page = file.read()
    found = list(faults(table, page))
    for fault in found:
        print(fault)
    # A page with one thing wrong at a time is noticed.
    for right, wrong in (("**keepalive_ms**", "keepalive_ms"), ("(int, 50)", "(int, 51)"), ("**spin_us**", "**spin_ms**"), ("SECTION [mpi]", "SECTION [mpj]")):
        if right not in page or len(list(faults(table, page.replace(right, wrong, 1)))) <= len(found):
            print(f"{wrong} instead of {right} is not noticed")
            found.append(wrong)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
