#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Shows that references.py finds each kind of dead reference, in a small tree that is without any."""

import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import references  # noqa: E402
from verdict import end_judged  # noqa: E402

PAGE = """# Calls

## 4.2 VI

1. One.
2. Two.

| Rule | What holds |
|---|---|
| M1 | one |
| M2 | two |

## e.2 Rows

| # | |
|---|---|
| 9 | nine |
"""
GOOD = {
    "docs/spec/calls.md": PAGE,
    "docs/a.md": "# A page\n\n## What it *says*\n\n[spec](spec/calls.md#42-vi) [here](#what-it-says) **VipA**(3) `[no](link.md)`\n",
    "docs/glossary.md": "| term | `code/a.cpp`, `code/` |\n",
    "man/VipA.3.md": "# NAME\n\nVipA - a call\n\n# SEE\n",
    "man/CMakeLists.txt": "",
    "code/a.cpp": "// A comment (spec/calls 4.2 rule 2, M1-M2), that goes on (spec/calls\n// e.2 row 9 and M1).\nint f(T1);\n",
}

SIGN = "\u00a7"
# File, what is written at its end, and what the report must say; nothing when it is no fault.
BAD = [
    ("code/a.cpp", "// spec/calls 4.3\n", "no section 4.3"),
    ("code/a.cpp", "// spec/calls 4.2 rule 3\n", "no entry 3 in section 4.2"),
    ("code/a.cpp", "// spec/calls 4.2 rules 1 and 7\n", "no entry 7"),
    ("code/a.cpp", "// spec/calls e.2 row 8\n", "no entry 8"),
    ("code/a.cpp", "// spec/calls M3\n", "no row M3"),
    ("code/a.cpp", "// spec/calls 4.2, M1-M4\n", "no row M3"),
    ("code/a.cpp", "// spec/calls M2-M1\n", "is no range"),
    ("code/a.cpp", "// spec/gone 4.2\n", "no page gone"),
    ("code/a.cpp", "// all of spec/gone\n", "no page gone"),
    ("code/a.cpp", "// spec/calls\n// 4.9\n", "no section 4.9"),
    ("code/a.cpp", f"// {SIGN}4.2\n", "an old reference"),
    ("code/a.cpp", "// " + "vipl-" + "compat M1\n", "an old reference"),
    ("code/a.cpp", "// " + "vipl-" + " compat M1\n", "an old reference"),
    ("code/a.cpp", "// must be so (M1)\n", "a rule without its page"),
    ("code/a.cpp", "int g(M1);\n", None),
    ("docs/a.md", "[gone](gone.md)\n", "no such file"),
    ("docs/a.md", "[gone](spec/calls.md#gone)\n", "no such heading"),
    ("docs/a.md", "[gone](#gone)\n", "no such heading"),
    ("docs/a.md", "[out](../../etc/passwd)\n", "no such file"),
    ("docs/a.md", "**VipGone**(3)\n", "no such manual page"),
    ("docs/glossary.md", "| term | `code/gone.cpp` |\n", "not in this tree"),
    ("docs/a.md", "see spec/calls 4.7\n", "no section 4.7"),
    ("docs/a.md", "```\n[gone](gone.md)\n```\n", None),
    ("docs/a.md", "[web](https://example.org/gone)\n", None),
]


def report_of(extra):
    with tempfile.TemporaryDirectory() as tree:
        for path, text in GOOD.items():
            full = os.path.join(tree, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text + (extra[1] if extra and extra[0] == path else ""))
        return list(references.faults(tree))


def main():
    end_judged(((case, report_of(case), case[2] if case else None) for case in [None, *BAD]), "trees")


if __name__ == "__main__":
    main()
