#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The steps of docs/architecture.md exist: each function of a row stands in the file of that row, and is the place where it is
defined or called from the step before; and neither path has more than six files.  Usage: paths.py ROOT"""

import os
import re
import sys

sys.dont_write_bytecode = True
from verdict import end, read, unnoticed  # noqa: E402

ROW = re.compile(r"^\| (?:\d+ \| )?`([\w/.-]+\.\w+)` \| ((?:`\w+`(?:, )?)+) \|", re.MULTILINE)
ALSO = re.compile(r"`(\w+)` in `([\w/.-]+\.\w+)`")
MOST = 6


def has(text, function):
    """A definition: the name, its parameters, and a body or a macro that writes one."""
    if function.startswith("MPI_"):
        return re.search(rf"VIADUCT_MPI_\w+\((?:\w+,\s*)?{function[4:]},", text) is not None
    return re.search(rf"(?m)^[ \w:<>,&*\[\]()]*\b{function}(?:<\w+>)?\([^;{{}}]*\)[^;{{}}]*\{{", text) is not None


def faults(page, root):
    sections = [part for part in re.split(r"^## ", page, flags=re.MULTILINE) if part.startswith("`")]
    if len(sections) != 2:
        yield f"there are {len(sections)} paths, and should be two"
    for section in sections:
        title = section.splitlines()[0]
        steps = re.findall(r"^\| \d+ \| `([^`]+)`", section, re.MULTILINE)
        rows = ROW.findall(section)
        if len(steps) < 5 or len(rows) < len(steps):
            yield f"{title}: the steps cannot be read"
        files = set(steps) | {file for _, file in ALSO.findall(section)}
        if len(files) > MOST:
            yield f"{title}: {len(files)} files are more than {MOST}"
        wanted = [(file, function) for file, functions in rows for function in re.findall(r"\w+", functions)]
        wanted += [(file, function) for function, file in ALSO.findall(section)]
        for file, function in wanted:
            path = os.path.join(root, file)
            if not os.path.isfile(path):
                yield f"{title}: there is no {file}"
                continue
            if not has(read(path), function):
                yield f"{title}: {file} does not define {function}"


def main():
    root = sys.argv[1]
    page = read(root, "docs/architecture.md")
    # A page with one thing wrong at a time is noticed.
    changes = [("`write_now` |", "`write_then` |"), ("`vipl/post.cpp` | `post_send`", "`vipl/posts.cpp` | `post_send`"),
               ("`may_send` in", "`may_sent` in"), ("`MPI_Send` |", "`MPI_Sent` |"),
               ("| 4 | `vipl/c_api_data.cpp`", "| 4 | `vipl/cq.cpp`")]
    end(list(faults(page, root)) + list(unnoticed(page, changes, lambda changed: faults(changed, root))))


if __name__ == "__main__":
    main()
