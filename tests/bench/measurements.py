#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes a page of docs/measurements out of what benchmarks print: `./viaduct bench --docs` runs them and calls this.
usage: measurements.py [--out FOLDER] [--commit TEXT] SUBJECT --run COMMAND FILE [--run COMMAND FILE]...

Each FILE has what COMMAND printed: the tables of viaduct_bench and viaduct_crowded, of bench --peers, of bench --ports or of
onesided.py, or the JSON of vipperf. The page has one section for each run: machine, commit, date, command, and the tables
with the figures as they were printed."""

import argparse
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
SUBJECTS = {
    "default-nic": "The default NIC beside the limits of the machine",
    "peers": "The default NIC and MPI beside other libraries",
    "onesided": "One-sided MPI beside other libraries",
    "ports": "VI over Ethernet beside bare frames, UDP and TCP",
    "vipperf": "vipperf",
}
DATE = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d UTC)?"
BENCH = re.compile(rf"Viaduct [\d.]+, (?P<machine>.*), (?P<date>{DATE})$")
PEERS = re.compile(rf"(?P<machine>.*, Linux .*, processors \d+ and \d+, \d+ rounds), (?P<date>{DATE})$")
PORTS = re.compile(rf"(?P<title>acenic over .*); (?P<machine>.*); (?P<date>{DATE})$")
BLOCK = re.compile(r"(near|far|remote|one) processors?\b.*")
NAME_WIDTH, CELL_WIDTH = 26, 20  # of bench --peers


class Section:
    def __init__(self, title, machine, date):
        self.title, self.machine, self.date = title, machine, date
        self.lines = []

    def table(self, head, rows):
        self.lines += ["", "| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
        self.lines += ["| " + " | ".join(row) + " |" for row in rows]


def of_json(text):
    data = json.loads(text)
    section = Section(f"{data['nic']}, {data['reliability']}", data["machine"], data["date"])
    for test in data.get("tests", ()):
        section.lines += ["", f"{test['test']}, {test['completion']}"]
        head = list(test["rows"][0])
        section.table(head, [[str(row[name]) for name in head] for row in test["rows"]])
    series = data.get("series", ())
    if series:
        section.table(["what", "distance", "bytes", "unit", "median", "samples"],
                      [[one["name"], one.get("distance", ""), str(point["bytes"]), one["unit"], str(point["median"]),
                        str(len(point["samples"]))] for one in series for point in one["points"]])
    return [section]


def bench_rows(lines):
    """Lines of viaduct_bench: name, unit, median, and where there is one limit and ratio, then samples."""
    rows = []
    for line in lines:
        cells = re.split(r"  +", line.strip())
        if len(cells) < 4:
            raise ValueError(f"a row of figures was expected: {line}")
        disturbed = cells[-1] == "disturbed"
        name, unit, median, *more = cells[:-1] if disturbed else cells
        rows.append([name, unit, median, *(more[:-1] if len(more) == 3 else ["", ""]),
                     more[-1] + (" (disturbed)" if disturbed else "")])
    return rows


def peers_rows(lines):
    head = lines[0][NAME_WIDTH:]
    columns = [head[at:at + CELL_WIDTH].strip() for at in range(0, len(head), CELL_WIDTH)]
    rows = []
    for line in lines[1:]:
        figures = [line[NAME_WIDTH + CELL_WIDTH * n:NAME_WIDTH + CELL_WIDTH * (n + 1)].split() for n in range(len(columns))]
        rows.append([line[:NAME_WIDTH].strip()] + [f"{c[0]} ({c[1]})" if len(c) == 2 else "".join(c) for c in figures])
    return columns, rows


def onesided_rows(lines):
    width = 14
    head = lines[0][29:]
    columns = ["window", "operation"] + [head[at:at + width].strip() for at in range(0, len(head), width)]
    return columns, [[line[:11].strip(), line[11:29].strip()] +
                     [line[29 + width * n:29 + width * (n + 1)].strip() for n in range(len(columns) - 2)] for line in lines[1:]]


def sections_of(text):
    if text.lstrip().startswith("{"):
        return of_json(text)
    found = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        heading = BENCH.match(line) or PEERS.match(line) or PORTS.match(line)
        if heading:
            before = lines[at - 2].strip() if at > 1 and BENCH.match(line) else ""
            found.append(Section(heading.groupdict().get("title") or before or "Half a round trip, one way, collectives",
                                 heading["machine"], heading["date"]))
            if lines[at:at + 1] and lines[at].startswith("window"):
                block = []
                while at < len(lines) and lines[at].strip() and not re.match(r"(left out|failed): ", lines[at]):
                    block.append(lines[at])
                    at += 1
                found[-1].title = "An operation and its flush, ns"
                found[-1].table(*onesided_rows(block))
            continue
        if re.match(r"(left out|failed): |\d+ rounds did not count", line) and found:
            found[-1].lines += ["", line.strip()]
        elif found and (line.startswith("|") or line.startswith("Medians of ")):
            if line.startswith("Medians") or line.startswith("| what"):
                found[-1].lines.append("")
            found[-1].lines.append(line)
        elif found and BLOCK.match(line):
            block = []
            while at < len(lines) and lines[at].strip():
                block.append(lines[at])
                at += 1
            if re.search(r"\bmedian\b", line):
                found[-1].lines += ["", line[:36].strip()]
                found[-1].table(["what", "unit", "median", "limit", "ratio", "samples"], bench_rows(block))
            else:
                found[-1].lines += ["", line.strip()]
                columns, rows = peers_rows(block)
                found[-1].table(["", *columns], rows)
    return found


def page(subject, runs):
    """The text of a page; `runs` has a command, what it printed, and the commit it was built from."""
    out = ["<!-- SPDX-License-Identifier: BSD-2-Clause -->", f"# {SUBJECTS[subject]}", "",
           f"Made by `./viaduct bench --docs {subject}`. What the figures mean: [../performance.md](../performance.md)."]
    for command, text, commit in runs:
        sections = sections_of(text)
        if not sections or not all(section.lines for section in sections):
            raise ValueError(f"{command}: no table with machine and date was found in what it printed")
        for section in sections:
            out += ["", f"## {section.title}", "", "| | |", "| --- | --- |", f"| Machine | {section.machine} |",
                    f"| Commit | {commit} |", f"| Date | {section.date} |", f"| Command | `{command}` |", *section.lines]
    return "\n".join(out) + "\n"


def commit_text():
    def git(*arguments):
        done = subprocess.run(["git", "-C", SOURCE, *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("rev-parse", "--short=8", "HEAD")
    if not commit:
        return "not known"
    return commit + (" with changes" if git("status", "--porcelain", "--untracked-files=no") else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subject", choices=SUBJECTS)
    parser.add_argument("--out", default=os.path.join(SOURCE, "docs/measurements"))
    parser.add_argument("--commit", default=None)
    parser.add_argument("--run", nargs=2, action="append", metavar=("COMMAND", "FILE"), required=True)
    options = parser.parse_args()
    runs = []
    for command, name in options.run:
        with open(name, encoding="utf-8") as file:
            runs.append((command, file.read(), options.commit or commit_text()))
    try:
        text = page(options.subject, runs)
    except (ValueError, KeyError, IndexError) as error:
        sys.exit(f"measurements: {error}")
    os.makedirs(options.out, exist_ok=True)
    path = os.path.join(options.out, options.subject + ".md")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
