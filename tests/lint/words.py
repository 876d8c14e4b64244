#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Words that must not come back: names of the code and its files, keys of settings, headings and phrases of documents. Each has
the standard term that takes its place (docs/glossary.md).
usage: words.py SOURCE_FOLDER"""

import os
import re
import subprocess
import sys

# Phrases of documents and manual pages: what they mean is said plainly, and in the present tense.
PHRASES = [
    (r"bad weather", "fault injection, injected faults, a lossy network"),
    (r"\b(short|general|usual|long) ways?\b", "fast path, slow path"),
    (r"\bgoodbye\b", "close"),
    (r"\bdiary\b", "log"),
    (r"\bverdict\b", "nack, result"),
    (r"\bnonsense\b", "invalid values, protocol error"),
    (r"\bwhoever\b", "the thread that, each process that"),
    (r"\bcompanions?\b", "control QP"),
    (r"\bone evening\b|\bthat evening\b|\btonight\b", "machine, commit and date"),
    (r"not (come back|seen again)|was not seen again|has not been seen since", "what holds and what does not"),
    (r"\b(in|of) (\d+|one|two|three|twelve) (of (\d+|two|three|twelve) )?runs\b", "docs/measurements"),
    (r"\bused to (be|do|have|take|go)\b", "what holds"),
]
HEADINGS = [
    (r"bad weather", "fault injection"),
    (r"stands? still", "stalled processes"),
    (r"\bwho may\b", "killed processes, stalled processes, hostile peers"),
    (r"\b(in general|usual|short)\b", "fast path, slow path"),
    (r"\bfor whoever\b", "use"),
    (r"(^|\W)since\b", "measurements"),
]
# Pages with limits of their own: two screens.
LINES = {"docs/performance.md": 100}
COLUMNS = {"docs/performance.md": 120}

DOCUMENT = re.compile(r"^(docs/(?!spec/|measurements/).*\.md|man/.*\.md|[A-Z]+\.md)$")
# CHANGELOG says what was.
NOT_A_DOCUMENT = re.compile(r"^(CHANGELOG\.md|docs/adi.*\.md)$")


def files_of(source):
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return listed.stdout.rstrip("\0").split("\0")
    names = []
    for folder, folders, found in os.walk(source):
        folders[:] = [name for name in folders if not name.startswith((".", "build"))]
        names += [os.path.relpath(os.path.join(folder, name), source) for name in found]
    return names


def read(source, name):
    with open(os.path.join(source, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def faults_of_document(name, text):
    lines = text.rstrip("\n").split("\n")
    if len(lines) > LINES.get(name, len(lines)):
        yield f"{name}: {len(lines)} lines, {LINES[name]} are allowed"
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced:
            continue
        if not line.startswith("|") and len(line) > COLUMNS.get(name, len(line)):
            yield f"{name}:{number}: {len(line)} columns, {COLUMNS[name]} are allowed"
        listed = HEADINGS if line.startswith("#") else PHRASES
        for pattern, instead in listed:
            found = re.search(pattern, line, re.I)
            if found:
                kind = "heading" if listed is HEADINGS else "phrase"
                yield f"{name}:{number}: {kind} '{found.group()}'; say {instead}"
    # A phrase may go over the end of a line.
    for first, second in zip(lines, lines[1:]):
        joined = first.rstrip() + " " + second.lstrip()
        for pattern, instead in PHRASES:
            found = re.search(pattern, joined, re.I)
            if found and found.start() < len(first.rstrip()) < found.end():
                yield f"{name}: phrase '{found.group()}'; say {instead}"


def main():
    source = os.path.abspath(sys.argv[1])
    names = [name for name in files_of(source) if os.path.isfile(os.path.join(source, name))]
    faults = []
    for name in names:
        if DOCUMENT.match(name) and not NOT_A_DOCUMENT.match(name):
            faults += faults_of_document(name, read(source, name))
    print("\n".join(faults) or f"words: {len(names)} files, none of the words that were replaced")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
