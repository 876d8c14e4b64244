#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tests/README.md has a row for each folder of tests and for each label of a test, and says in which part of `./viaduct test` a label runs as
short_labels in ./viaduct says it.  Usage: map.py ROOT BUILD CTEST"""

import json
import os
import re
import subprocess
import sys

ROW = re.compile(r"^\| (?P<folders>[^|]*)\|[^|]*\| (?P<labels>[^|]*)\| (?P<part>[^|]*)\|$", re.MULTILINE)
QUOTED = re.compile(r"`([\w./-]+?)/?`")
# Marks on tests that have a kind beside it, or that no part runs.
MARKS = {"threads", "obligations"}


def used_labels(build, ctest):
    said = subprocess.run([ctest, "--show-only=json-v1"], cwd=build, stdout=subprocess.PIPE, check=True).stdout
    return {label for test in json.loads(said)["tests"] for p in test.get("properties", []) if p["name"] == "LABELS" for label in p["value"]}


def faults(page, script, folders, used):
    short = set(re.search(r"^short_labels='([\w|]+)'$", script, re.MULTILINE).group(1).split("|"))
    found_folders, found = set(), {}
    for row in ROW.finditer(page):
        found_folders.update(QUOTED.findall(row["folders"]))
        for label in QUOTED.findall(row["labels"]):
            # "first; `report` second": the named label is in the second part, the others are in the first.
            own = re.search(rf"`{label}` (first|second)", row["part"])
            part = own.group(1) if own else row["part"].split(";")[0].strip()
            found.setdefault(label, set()).add(part)
    yield from (f"no row has the folder {folder}/" for folder in sorted(folders - found_folders))
    yield from (f"no row has the label {label}" for label in sorted((used | short) - MARKS - set(found)))
    for label, parts in sorted(found.items()):
        if parts != {"first" if label in short else "second"}:
            yield f"label {label}: the map says {' and '.join(sorted(parts))}, short_labels the other"


def main():
    root, build, ctest = sys.argv[1:]
    tests = os.path.join(root, "tests")
    folders = {name for name in os.listdir(tests) if os.path.isdir(os.path.join(tests, name)) and name != "__pycache__"}
    with open(os.path.join(tests, "README.md"), encoding="utf-8") as page, open(os.path.join(root, "viaduct"), encoding="utf-8") as script:
        found = list(faults(page.read(), script.read(), folders, used_labels(build, ctest)))
    print("\n".join([*found, f"{len(folders)} folders, {len(found)} faults"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
