#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Shows that obligations.py finds each kind of fault in the table, which is without any.  Usage: selftest.py ROOT"""

import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import obligations  # noqa: E402
from verdict import end_judged, read  # noqa: E402


def changed(text, row, change):
    """The table with one row made different."""
    return "".join(
        change(line) if line.startswith(f"| {row} |") else line for line in text.splitlines(keepends=True)
    )


def cell(line, number, text):
    cells = line.rstrip("\n").split(" | ")
    cells[number] = text if number < 3 else text + " |"
    return " | ".join(cells) + "\n"


# What becomes of a row, and what the report must say. P52 has a file and a test.
BAD = [
    (lambda line: "", "P52 is there 0 times"),
    (lambda line: line + line, "P52 is there 2 times"),
    (lambda line: line + line.replace("| P52 |", "| P53 |"), "there is no row P53"),
    (lambda line: cell(line, 1, ""), "does not say what is asked"),
    (lambda line: cell(line, 2, "`mpi-adi/transport/multirail/gone.cpp`"), "which is not there"),
    (lambda line: cell(line, 2, "somewhere"), "has no file or no test"),
    (lambda line: cell(line, 3, "looked at it"), "has no file or no test"),
    (lambda line: cell(line, 3, "open: not done yet"), "has no file or no test"),
    (lambda line: cell(line, 3, "not here: no"), "has no file or no test"),
    (lambda line: cell(line, 3, "`adi_module_test rails no_such_case`"), "no case of that module"),
    (lambda line: cell(line, 3, "`adi_module_test shm flapping`"), "no case of that module"),
    (lambda line: cell(line, 3, "`adi_module_test ipx sizes`"), "no module"),
    (lambda line: cell(line, 3, "`unit Loader.NeverWas`"), "no case in tests/unit"),
    (lambda line: cell(line, 3, "`make check`"), "is not the name of a test"),
]

# The same for C58 of the other page.
BAD_OF_DEVICE = [
    (lambda line: "", "C58 is there 0 times"),
    (lambda line: line + line, "C58 is there 2 times"),
    (lambda line: cell(line, 2, "`gone.cpp`"), "which is not there"),
    (lambda line: cell(line, 2, "`lane.cpp` `gone`"), "which none of its files has"),
    (lambda line: cell(line, 3, "looked at it"), "has no test"),
    (lambda line: cell(line, 3, "via/gone"), "no case of that module"),
    (lambda line: cell(line, 3, "`Gone.…`"), "no case in tests/adi"),
    (lambda line: cell(line, 3, "`tests/gone`"), "which is not there"),
]


def main():
    root = os.path.abspath(sys.argv[1])
    pages = ["docs/obligations.md", "docs/obligations-mpi.md"]
    text, text_of_device = (read(root, page) for page in pages)
    with tempfile.TemporaryDirectory() as tree:
        for folder in os.listdir(root):
            if folder not in ("docs", "build", ".git"):
                os.symlink(os.path.join(root, folder), os.path.join(tree, folder))
        os.mkdir(os.path.join(tree, "docs"))
        trees = [(text, text_of_device, None)]
        trees += [(changed(text, "P52", change), text_of_device, expected) for change, expected in BAD]
        trees += [(text, changed(text_of_device, "C58", change), expected) for change, expected in BAD_OF_DEVICE]

        def report_of(contents):
            for page, content in zip(pages, contents):
                with open(os.path.join(tree, page), "w", encoding="utf-8") as file:
                    file.write(content)
            return list(obligations.faults(tree))

        end_judged(((number, report_of(contents), expected) for number, (*contents, expected) in enumerate(trees)),
                   "tables")


if __name__ == "__main__":
    main()
