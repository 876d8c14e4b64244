#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Follows every reference to the specification in all files, and every link of the documents.  Usage: references.py ROOT

A reference is `spec/PAGE NUMBER` (docs/spec/README.md). PAGE is a file of docs/spec. NUMBER is the number of a heading there, or
a rule that begins a row of a table; `rule 4` and `row 9` behind a heading's number name an entry of a list or table below it.
A link of a Markdown file leads to a file of this tree and, behind #, to one of its headings.
The places in the glossary exist. References of another form (a section sign, the name of a page that is not in this tree) are faults too."""

import os
import re
import sys

sys.dont_write_bytecode = True
from verdict import end  # noqa: E402

CODE = (".c", ".cpp", ".h", ".hpp", ".py", ".sh", ".lua", ".cmake", ".map", ".toml", ".txt", ".in", "")
PAGES = "docs/spec"
GLOSSARY = "docs/glossary.md"
SIGN = "\u00a7"
# Written apart, so that this file names none.
OLD = re.compile(rf"\b(?:vipl-[ ]?(?:semantics|compat|header)|(?:adi|mpi|dpdk|hardware|performance)-[ ]?facts)\b|{SIGN}")
# `(M10)` in a comment: the page is missing.
BARE = re.compile(r"(?:^|\s)\((?:[A-Z]\d{1,2})(?:[-\u2013][A-Z]?\d{1,2})?(?=[,;:)])")
COMMENT = re.compile(r"//|^\s*(?:\*|#|/\*)")

NEXT = r"(?:[ ]+|[ ]*\n[ \t]*(?://[/!]?|\*|\#)?[ ]*)"
TAIL = r"(?:,? (?:rules?|rows?) \d+(?:(?:, | and )\d+(?![\d.]))*)?"
NUMBER = rf"(?:\d+(?:\.\d+)*|[a-e](?:\.\d+)?)(?:-\d+(?:\.\d+)*)?{TAIL}"
RULE = r"[A-Z]\d{1,2}(?:[-\u2013][A-Z]?\d{1,2})?"
ONE = rf"(?<![\w.])(?:{RULE}\b|{NUMBER}\b)"
REFERENCE = re.compile(rf"(?<![\w/.])spec/([a-z]+){NEXT}({ONE}(?:(?:, | and |,{NEXT}){ONE})*)")
ANY = re.compile(r"(?<![\w/.-])spec/([a-z]+)\b(?![/.\w])")


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        return ""


def files(root):
    """All files of the tree, without what is built."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".git", "build")) and f not in ("__pycache__", ".cache"))
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.islink(path) or os.path.splitext(name)[1] not in CODE + (".md",):
                continue
            # What is planted there is dead.
            if name != "references_selftest.py":
                yield os.path.relpath(path, root)


def without_code(text):
    """A Markdown text with blocks and spans of code blanked; lines keep their numbers."""
    out, fence = [], None
    for line in text.splitlines():
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or line.strip().startswith(fence)):
            fence = mark[1] if fence is None else None
            out.append("")
        else:
            out.append("" if fence else re.sub(r"(`+)(?:(?!\1).)+\1", "", line))
    return "\n".join(out)


def headings(text):
    """Headings of a Markdown text, blocks of code left out."""
    fence = False
    for line in text.splitlines():
        if re.match(r"\s*(```|~~~)", line):
            fence = not fence
        found = None if fence else re.match(r"(#{1,6})\s+(.*?)\s*#*$", line)
        if found:
            yield found[2]


def slug(heading):
    """The anchor that the usual viewers make of a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def anchors(text):
    seen, found = {}, set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for heading in headings(text):
        name = slug(heading)
        times = seen.get(name, 0)
        seen[name] = times + 1
        found.add(f"{name}-{times}" if times else name)
    return found


class Page:
    """What of a page of the specification can be named."""

    def __init__(self, text):
        self.sections = {}
        self.rules = set()
        # The lists and tables of the section a line stands in.
        entries, fence = None, False
        for line in text.splitlines():
            if re.match(r"\s*```", line):
                fence = not fence
            heading = None if fence else re.match(r"#+\s+(\d+(?:\.\d+)*|[a-e](?:\.\d+)?)\s", line)
            if heading:
                entries = self.sections.setdefault(heading[1], set())
            entry = re.match(r"\s*(\d+)\.\s|\|\s*(\d+)\s*\|", line)
            if entry and entries is not None:
                entries.add(entry[1] or entry[2])
            rule = re.match(r"\|\s*([A-Z]\d{1,2})\s*\|", line)
            if rule:
                self.rules.add(rule[1])

    def fault(self, item):
        """None when the page has what `item` names."""
        rule = re.fullmatch(r"([A-Z])(\d+)(?:[-\u2013]([A-Z]?)(\d+))?", item)
        if rule:
            letter, first, other, last = rule[1], int(rule[2]), rule[3] or rule[1], int(rule[4] or rule[2])
            if other != letter or last < first:
                return "is no range"
            gone = [f"{letter}{i}" for i in range(first, last + 1) if f"{letter}{i}" not in self.rules]
            return f"has no row {gone[0]}" if gone else None
        parts = re.fullmatch(r"([a-e\d.]+?)(?:-([\d.]+))?(?:,? (?:rules?|rows?) (.*))?", item, re.DOTALL)
        for number in (parts[1], parts[2]):
            if number and number not in self.sections:
                return f"has no section {number}"
        for entry in re.findall(r"\d+", parts[3] or ""):
            if entry not in self.sections[parts[1]]:
                return f"has no entry {entry} in section {parts[1]}"
        return None


def pages(root):
    folder = os.path.join(root, PAGES)
    return {name[:-3]: Page(read(os.path.join(folder, name))) for name in os.listdir(folder) if name.endswith(".md")}


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def reference_faults(path, text, known):
    whole = set()
    for found in REFERENCE.finditer(text):
        where = f"{path}:{line_of(text, found.start())}: {' '.join(found[0].split())}"
        whole.add(found.start())
        if found[1] not in known:
            yield f"{where}: no page {found[1]}"
            continue
        # Commas inside "rules 2, 3" do not begin an item.
        for item in re.findall(ONE, found[2]):
            fault = known[found[1]].fault(item)
            if fault:
                yield f"{where}: {found[1]} {fault}"
    for found in ANY.finditer(text):
        if found.start() not in whole and found[1] not in known:
            yield f"{path}:{line_of(text, found.start())}: {found[0]}: no page {found[1]}"


def old_faults(path, text):
    code = os.path.splitext(path)[1] in (".c", ".cpp", ".h", ".hpp")
    for number, line in enumerate(text.splitlines(), 1):
        old = OLD.search(line)
        if old:
            yield f"{path}:{number}: {old[0]}: an old reference; write spec/PAGE NUMBER"
        if code and COMMENT.search(line) and BARE.search(line):
            yield f"{path}:{number}: {BARE.search(line)[0].strip()}: a rule without its page; write spec/PAGE NUMBER"


def link_faults(root, path, text, cache):
    plain = without_code(text)
    targets = [(m.start(), m[1]) for m in re.finditer(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)", plain)]
    targets += [(m.start(), m[1]) for m in re.finditer(r"^\s*\[[^\]]+\]:\s*(\S+)", plain, re.MULTILINE)]
    targets += [(m.start(), m[1]) for m in re.finditer(r"(?:src|srcset|href)=\"([^\"]+)\"", plain)]
    for offset, target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        where = f"{path}:{line_of(plain, offset)}: {target}"
        file, _, anchor = target.partition("#")
        aim = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        full = os.path.join(root, aim)
        if aim.startswith("..") or not os.path.exists(full):
            yield f"{where}: no such file"
        elif anchor and aim.endswith(".md"):
            if aim not in cache:
                cache[aim] = anchors(read(full))
            if anchor not in cache[aim]:
                yield f"{where}: no such heading"


def manual_faults(root, path, text):
    """Manual pages of this project that are named as **name**(section)."""
    for found in re.finditer(r"\*\*((?:Vip|vip|cmpi|viaduct)[\w.-]*)\*\*\((\d)\)", text):
        if not os.path.exists(os.path.join(root, "man", f"{found[1]}.{found[2]}.md")) and found[1] not in SHARED:
            yield f"{path}:{line_of(text, found.start())}: {found[1]}({found[2]}): no such manual page"


def place_faults(root, path, text):
    """Files and folders that the glossary names."""
    for number, line in enumerate(text.splitlines(), 1):
        for place in re.findall(r"`([\w.-]+/[^`\s]*)`", line):
            if not os.path.exists(os.path.join(root, place)):
                yield f"{path}:{number}: {place}: not in this tree"


# Calls that share the page of another one.
SHARED = set()


def shared_pages(root):
    """Names that a manual page serves besides its own: the last part of its NAME line."""
    for name in os.listdir(os.path.join(root, "man")):
        if name.endswith(".md"):
            text = read(os.path.join(root, "man", name))
            line = re.search(r"^# NAME\s+(.*?)\s+-\s", text, re.MULTILINE | re.DOTALL)
            yield from re.split(r",\s*", line[1].replace("\n", " ")) if line else ()
    for line in re.findall(r"\b(?:Vip|vip)\w+(?=\.\d\b)", read(os.path.join(root, "man", "CMakeLists.txt"))):
        yield line


def faults(root):
    known, cache = pages(root), {}
    SHARED.update(shared_pages(root))
    for path in files(root):
        text = read(os.path.join(root, path))
        yield from reference_faults(path, text, known)
        yield from old_faults(path, text)
        if path.endswith(".md"):
            yield from link_faults(root, path, text, cache)
            yield from manual_faults(root, path, text)
        if path == GLOSSARY:
            yield from place_faults(root, path, text)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = os.path.abspath(sys.argv[1])
    found = list(faults(root))
    counted = sum(len(REFERENCE.findall(read(os.path.join(root, path)))) for path in files(root))
    end(found, f"{counted} references, {len(found)} faults", enough=counted > 0)


if __name__ == "__main__":
    main()
