#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Durations of 50 ms and more that the product's code names outside of the table of time limits (core/clock/limits.def) are those of
durations.txt, each with the reason why it is no limit: VIADUCT_TIME_FACTOR does not stretch it.  Usage: durations.py ROOT"""

import os
import re
import sys

FOLDERS = ("core", "vipl", "kagent", "providers", "utils", "mpi-adi")
ALLOWED = "tests/lint/durations.txt"
LEAST_MS = 50

NUMBER = r"(?<![\w'.])(\d[\d']*)"
# A number, and how many of it are a millisecond. Behind * / % it turns units into each other.
FORMS = [
    (re.compile(rf"\b(?:int64_t|Time|auto)\b.*(?<![*/%] ){NUMBER}(?![\w'.])"), 1_000_000),
    (re.compile(rf"(?<![*/%] ){NUMBER}(?![\w'.])(?=.*\bns\b)"), 1_000_000),
    (re.compile(rf"{NUMBER} \* k(?:Ms|Millisecond)\b"), 1),
    (re.compile(rf"\bmilliseconds(?: \w+)?[({{]{NUMBER}[)}}]"), 1),
    (re.compile(rf"\bseconds(?: \w+)?[({{]{NUMBER}[)}}]"), 0.001),
    (re.compile(rf"\bk\w+M(?:s|illiseconds) = {NUMBER}"), 1),
    (re.compile(rf"\busleep\({NUMBER}\)"), 1000),
]
COMMENT = re.compile(r"//.*|/\*.*?\*/")
NAME = re.compile(r"(\w+)(?:\[\])?(?: =|[{(]\d)")


def sources(root):
    for top in FOLDERS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            yield from (os.path.relpath(os.path.join(folder, n), root) for n in sorted(names) if n.endswith((".cpp", ".hpp")))


def longest_ms(line):
    code = COMMENT.sub("", line)
    return max((int(n.replace("'", "")) / each for form, each in FORMS for n in form.findall(code)), default=0)


def durations(lines):
    """Line, name and milliseconds of each."""
    for number, line in enumerate(lines, 1):
        milliseconds = longest_ms(line)
        if milliseconds >= LEAST_MS:
            name = NAME.search(COMMENT.sub("", line))
            yield number, name.group(1) if name else "-", milliseconds


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def allowed_of(lines):
    """(path, name) to the reason."""
    rows = (line.split(None, 2) for line in lines if line and not line.startswith("#"))
    return {(row[0], row[1]): row[2] if len(row) == 3 else "" for row in rows}


def faults(root, allowed):
    used = set()
    for path in sources(root):
        for number, name, milliseconds in durations(read(os.path.join(root, path))):
            if (path, name) in allowed:
                used.add((path, name))
            else:
                yield (f"{path}:{number}: {name}, {milliseconds:g} ms: a limit stands in core/clock/limits.def; "
                       f"what is none stands in {ALLOWED}, with the reason")
    for path, name in sorted(set(allowed) - used):
        yield f"{ALLOWED}: {path} has no duration {name}"
    for (path, name), reason in allowed.items():
        if len(reason) < 10:
            yield f"{ALLOWED}: no reason for {name} of {path}"


# Lines, and whether each is found.
CASES = [
    ("constexpr int64_t kWait = 50'000'000;", True),
    ("constexpr int64_t kWait = 49'999'999;", False),
    ("    Time silence = 650'000'000;  // the peer is dead", True),
    ("constexpr auto kHello = std::chrono::seconds(5);", True),
    ("constexpr std::chrono::milliseconds kHello{49};", False),
    ("constexpr int64_t kRetry = 50 * kMillisecond;", True),
    ("inline constexpr VIP_ULONG kStallMs = 20'000;", True),
    ("    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;", False),
    ("    ::usleep(1'000'000);", True),
    ("// it waits 500'000'000 ns: int64_t", False),
    ("constexpr uint64_t kMostIterations = 100'000'000;", False),
]


def main():
    root = sys.argv[1]
    found = [f"the line {line} is judged wrongly" for line, is_one in CASES if (longest_ms(line) >= LEAST_MS) != is_one]
    allowed = allowed_of(read(os.path.join(root, ALLOWED)))
    found += faults(root, allowed)
    for fault in found:
        print(fault)
    print(f"{len(allowed)} durations are no limits, {len(found)} faults")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
