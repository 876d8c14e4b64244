#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The table of docs/limits.md is that of core/clock/limits.def, and the factor's variable stands in viaduct(7).
Usage: limits.py ROOT [--write]    With --write the table of the page is made anew."""

import os
import re
import sys

sys.dont_write_bytecode = True
from verdict import end, read, unnoticed  # noqa: E402

TABLE, PAGE, MANUAL = "core/clock/limits.def", "docs/limits.md", "man/viaduct.7.md"
ROW = re.compile(
    r"^(?:// ---- (?P<heading>.*)"
    r"|VIADUCT_LIMIT\((?P<name>\w+), (?P<ms>[\d']+), (?P<rest>.*)\)"
    r"|VIADUCT_SETTING_LIMIT\((?P<section>\w+), (?P<key>\w+), (?P<setting_ms>[\d']+), (?P<setting_rest>.*)\))$",
    re.MULTILINE)
FIRST, LAST = "<!-- table -->\n", "<!-- end of table -->"
VARIABLE = "VIADUCT_TIME_FACTOR"


def shown_time(milliseconds):
    if milliseconds % 60_000 == 0:
        return f"{milliseconds // 60_000} min"
    return f"{milliseconds // 1000} s" if milliseconds % 1000 == 0 else f"{milliseconds} ms"


def shown_page(page):
    return f"[{page}]({page})" if page.endswith(".md") else page


def table_of(rows):
    """Markdown, from the text of the table in C."""
    lines, count = [], 0
    for found in ROW.finditer(rows):
        if found["heading"]:
            lines += ["", f"## {found['heading']}", "", "| Limit | Time | Within it | Page |", "| --- | --- | --- | --- |"]
            continue
        meaning, page = re.findall(r'"([^"]*)"', found["rest"] or found["setting_rest"])
        name = f"`{found['name']}`" if found["name"] else f"setting **{found['section']}.{found['key']}**"
        time = shown_time(int((found["ms"] or found["setting_ms"]).replace("'", "")))
        lines.append(f"| {name} | {time} | {meaning} | {shown_page(page)} |")
        count += 1
    return "\n".join(lines + [""]) + "\n", count


def faults(rows, page, manual):
    table, count = table_of(rows)
    if count != len(re.findall(r"^VIADUCT_\w*LIMIT\(", rows, re.MULTILINE)) or count < 20:
        yield f"{TABLE} cannot be read"
    if FIRST + table + LAST not in page:
        yield f"{PAGE} does not show {TABLE}: tests/docs/limits.py ROOT --write"
    for path, text in ((PAGE, page), (MANUAL, manual)):
        if VARIABLE not in text:
            yield f"{path} does not name {VARIABLE}"


def write(root, rows):
    page = read(root, PAGE)
    before, after = page.split(FIRST)[0], page.split(LAST)[1]
    with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
        file.write(before + FIRST + table_of(rows)[0] + LAST + after)


def main():
    root = sys.argv[1]
    rows = read(root, TABLE)
    if sys.argv[2:] == ["--write"]:
        write(root, rows)
    page, manual = read(root, PAGE), read(root, MANUAL)
    # Each of these changes of the page is noticed.
    changes = [("| 9 s |", "| 8 s |"), ("`traffic`", "`trafic`"), ("## Calls of VIPL", "## Calls")]
    end(list(faults(rows, page, manual))
        + list(unnoticed(page, changes, lambda changed: faults(rows, changed, manual)))
        + list(unnoticed(manual, [(VARIABLE, "VIADUCT_TIME")], lambda changed: faults(rows, page, changed))))


if __name__ == "__main__":
    main()
