#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The page of mistakes has a row for each planted one, with the text that the library gives now.
Usage: page.py PROGRAM PAGE [--write]"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import run  # noqa: E402
from report.rows import report  # noqa: E402

HEAD = "| Mistake | What is said | Cure |\n| --- | --- | --- |\n"


def plain(text):
    """Addresses, handles and times differ from run to run."""
    text = re.sub(r"0x[0-9a-f]{5,}|\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", "0x…", text)
    text = re.sub(r"\bmistakes\d+\.\d+|\bdies\d+", "…", text)
    text = re.sub(r"\\(?=[0-9a-f]{2})", "", text)
    text = re.sub(r"(memory handle) (?:0x)?[0-9a-f…x]+", r"\1 …", text)
    text = re.sub(r"(tag|has) \d+\b", r"\1 …", text)
    return re.sub(r"descriptor \d+ of", "descriptor … of", text)


def rows(program):
    found = run([program, "--table"], 100)
    for line in found.stdout.splitlines():
        name, mistake, text = line.split("\t")
        parts = [plain(end) for end in text.split(" || ")]
        cures = "<br>".join(dict.fromkeys(part.partition("; cure: ")[2] for part in parts))  # each text has its own
        said = "<br>".join("`" + part.partition("; cure: ")[0] + "`" for part in parts)
        yield name, f"| {mistake} | {said} | {cures} |".replace("||", "|")


def main():
    program, page = sys.argv[1:3]
    found = list(rows(program))
    table = HEAD + "\n".join(row for _, row in found) + "\n"
    with open(page, encoding="utf-8") as file:
        before, head, after = file.read().partition(HEAD)
    rest = after.partition("\n\n")[2]
    if "--write" in sys.argv:
        with open(page, "w", encoding="utf-8") as file:
            file.write(before + table + ("\n" + rest if rest else ""))
        return 0
    there = (head + after.partition("\n\n")[0].rstrip("\n") + "\n").splitlines()
    failed = [name for name, row in found if row not in there]
    wrong = [line for line in table.splitlines() if line not in there]
    wanted = [name for name in os.environ.get("TEST_ROWS", "").split("\n") if name]
    if wanted:  # the program makes these mistakes only, and none for a name that it does not have
        wrong += [f"no row {name}" for name in wanted if name not in dict(found)]
    else:
        unmatched = [line for line in there if line not in table.splitlines()]
        wrong += unmatched
        # Each line of the page belongs to a row, whose text came out or not.
        if len(unmatched) == len(failed):
            report(failed)
    print("\n".join(wrong) or "the page says what the library says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
