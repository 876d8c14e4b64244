#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tests/unit has no sleep and reads no real clock: its tests move a clock (tests/moved_clock.hpp) or wait for a condition
(tests/eventually.hpp). Every sleep of another test has its reason in the table "Sleeps" of tests/README.md, and the table has
no row without a sleep.  Usage: sleeps.py [--write] ROOT

--write makes the table anew. The reason is the comment "sleeps: REASON" on the line of the sleep or above it; where there is
none, the reason in the table stays."""

import os
import re
import sys

UNIT = "tests/unit"
TABLE = "tests/README.md"
HEADING = "## Sleeps"
OWN = ("tests/lint/",)  # the checks and their examples
SOURCES = (".cpp", ".hpp", ".c", ".h", ".py", ".sh")

SLEEP = re.compile(r"\bsleep_(?:for|until)\b|\busleep\b|\bnanosleep\b|\btime\.sleep\b|(?<![\w.>])sleep\s*\((?!std::)|"
                   r"\bp?poll\((?:nullptr|NULL|0),|\bselect\.select\(\[\], \[\], \[\]|\bsleep [\d$]")
CLOCK = re.compile(r"\b(?:system|steady|high_resolution)_clock\b|\bclock_gettime\b|\bgettimeofday\b|::time\(|\btime\.time\(|"
                   r"\btime\.monotonic\(|\bslowness\b")
# A time from now on is a deadline, which a call gets. All other readings need a clock that the test moves.
READING = re.compile(r"\bnow_ns\(\)(?! \+)")
MOVED = "moved_clock.hpp"
REASON = re.compile(r"\bsleeps: (.*?)\s*(?:\*/)?\s*$")
C_COMMENT = re.compile(r"//.*|/\*.*?\*/|^\s*\*\s.*")
SCRIPT_COMMENT = re.compile(r"(?:^|\s)#.*")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def is_script(data):
    return data.startswith(b"#!")


def sources(root):
    """Paths below tests and lines of every source and script."""
    for folder, folders, names in os.walk(os.path.join(root, "tests")):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            path = os.path.join(folder, name)
            short = os.path.relpath(path, root)
            if os.path.islink(path) or short.startswith(OWN):
                continue
            if name.endswith(SOURCES) or ("." not in name and is_script(read(path))):
                yield short, read(path).decode("utf-8", "replace").splitlines()


def code_of(path, line):
    comment = C_COMMENT if path.endswith((".cpp", ".hpp", ".c", ".h")) else SCRIPT_COMMENT
    return comment.sub("", line)


def sleeps(path, lines):
    """The reason of each sleep, empty where there is no comment."""
    for number, line in enumerate(lines):
        if SLEEP.search(code_of(path, line)):
            found = REASON.search(line) or REASON.search(lines[number - 1] if number else "")
            yield found.group(1) if found else ""


def unit_faults(path, lines):
    moved = any(MOVED in line for line in lines)
    for number, line in enumerate(lines, 1):
        code = code_of(path, line)
        if SLEEP.search(code):
            yield f"{path}:{number}: a sleep: wait for a condition with eventually(), or for the sign of a thread"
        if CLOCK.search(code) or (READING.search(code) and not moved):
            yield f"{path}:{number}: a real clock: move a clock (tests/{MOVED}), or measure with RunningTime"


def split(text):
    """The text before the table, its rows (path to count and reason) and the text behind it."""
    before, heading, rest = text.partition(HEADING + "\n")
    if not heading:
        return text, {}, ""
    lines = rest.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.startswith("|")), len(lines))
    last = next((i for i in range(first, len(lines)) if not lines[i].startswith("|")), len(lines))
    rows = {}
    for line in lines[first + 2:last]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        rows[cells[0].strip("`")] = (int(cells[1]), cells[2])
    return before + heading + "".join(lines[:first]), rows, "".join(lines[last:])


def found_in(root):
    """Path to the reasons of its sleeps, outside of the unit tests."""
    found = {}
    for path, lines in sources(root):
        reasons = list(sleeps(path, lines))
        if reasons and not path.startswith(UNIT + "/"):
            found[path] = reasons
    return found


def table_of(found, rows):
    made = ["| File | Sleeps | Slept for |\n", "| --- | --- | --- |\n"]
    for path, reasons in sorted(found.items()):
        given = list(dict.fromkeys(reason for reason in reasons if reason))
        text = "; ".join(given) if given and "" not in reasons else rows.get(path, (0, "; ".join(given)))[1]
        made.append(f"| `{path}` | {len(reasons)} | {text} |\n")
    return "".join(made)


def table_faults(found, rows):
    for path, reasons in sorted(found.items()):
        count, reason = rows.get(path, (0, ""))
        if count != len(reasons):
            yield f"{path}: {len(reasons)} sleeps, {count} in the table of {TABLE} (sleeps.py --write)"
        elif len(reason) < 5:
            yield f"{TABLE}: no reason for the sleeps of {path}"
    for path in sorted(set(rows) - set(found)):
        yield f"{TABLE}: {path} has no sleep"


def main():
    root = sys.argv[-1]
    table = os.path.join(root, TABLE)
    before, rows, behind = split(read(table).decode())
    found = found_in(root)
    if "--write" in sys.argv:
        with open(table, "w", encoding="utf-8") as file:
            file.write(before + table_of(found, rows) + behind)
        before, rows, behind = split(read(table).decode())
    faults = [fault for path, lines in sources(root) if path.startswith(UNIT + "/") for fault in unit_faults(path, lines)]
    faults += table_faults(found, rows)
    for fault in faults:
        print(fault)
    print(f"{sum(map(len, found.values()))} sleeps in {len(found)} files outside of {UNIT}, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
