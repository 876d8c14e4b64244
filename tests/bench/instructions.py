#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Instructions of the hot calls, counted by callgrind: the same on every machine with the same compiler.

usage: instructions.py HOT_CALLS [--table FILE [--update]] [--acenic] [--verbs VERBS_CALLS]

Runs HOT_CALLS with few and with many rounds per mode; the difference is what so many rounds cost, set-up taken off. With
--table the counts are compared with the recorded ones, and growth is a failure; --update records them. --acenic counts
that provider too, by messages that are answered; its frames go to the port's own address, which leaves the driver out.
--verbs counts that provider's part of the calls, by a program of its own over a device made of functions.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ACENIC = "acenic echo"
CALLS = {
    "queue": ["VipPostSend", "VipSendDone", "VipRecvDone", "VipPostRecv"],
    "cq": ["VipPostSend", "VipSendDone", "VipCQDone", "VipRecvDone", "VipPostRecv"],
    "idle": ["VipRecvDone", "VipCQDone"],
    ACENIC: ["VipPostSend", "VipSendDone", "VipRecvDone", "VipPostRecv"],
}
VERBS = {f"verbs {what}": ["kick_send", "poll_send", "poll_recv", "kick_recv"] for what in ("send", "write", "read")}
CALLS.update(VERBS)
# Empty polls yield where the machine is busy: their count is shown, not compared.
GUARDED = ("queue", "cq", ACENIC, *VERBS)
ROUNDS = (1000, 5000)
# A helper thread that comes in between takes locks, which makes the program's own calls longer from then on, never
# shorter. acenic's comes whenever the program has not polled for a millisecond: the least of some runs is without it.
RUNS = {ACENIC: 3}
TOLERANCE = 1.02  # what the helper threads of the library add now and then, and half an instruction of rounding
SKIPPED = 77


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIPPED)


def callgrind(program, mode, rounds, folder):
    """Instructions of every exported call in one run, with what it calls."""
    out = os.path.join(folder, f"{mode.replace(' ', '-')}.{rounds}")
    environment = dict(os.environ)
    if mode == ACENIC:
        environment.update({
            "VIADUCT_AGENT": f"@viaduct-instructions-{os.getpid()}",
            "VIADUCT_ACENIC_PORTS": f"net_memif,socket={folder}/unused,role=server,mac=02:00:00:00:00:01",
            "VIADUCT_ACENIC_MODE": "exclusive",
            "VIADUCT_NAMES_DEFAULT_PROVIDER": "acenic",
        })
    command = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={out}", program, mode.split()[-1], str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    with open(out, encoding="utf-8") as profile:
        return costs_of_calls(profile)


def least(program, mode, rounds, folder):
    runs = [callgrind(program, mode, rounds, folder) for _ in range(RUNS.get(mode, 1))]
    return {call: min(run[call] for run in runs) for call in CALLS[mode]}


def exported(name):
    """The name of one of the library's calls, or of those of the verbs provider; else nothing."""
    if name.startswith("Vip"):
        return name
    match = re.fullmatch(r"viaduct::verbs::(\w+)\(viaduct::ViCore&\)", name)
    return match and match.group(1)


def costs_of_calls(profile):
    """Sums what the program's calls of each of these functions cost, from the lines of a callgrind profile."""
    names, costs, callee, next_is_cost = {}, {}, "", False
    for line in profile:
        if next_is_cost:
            if callee := exported(callee):
                costs[callee] = costs.get(callee, 0) + int(line.split()[-1])
            next_is_cost = False
        elif line.startswith("calls="):
            next_is_cost = True
        elif line.startswith(("fn=", "cfn=")):  # names are written once and numbered
            number, name = re.match(r"c?fn=(\(\d+\))(?: (.*))?", line).groups()
            if name:
                names[number] = name
            if line.startswith("cfn="):
                callee = names[number]
    return costs


def measure(programs):
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        for mode, program in programs.items():
            calls = CALLS[mode]
            few, many = (least(program, mode, rounds, folder) for rounds in ROUNDS)
            span = ROUNDS[1] - ROUNDS[0]
            counts[mode] = {call: round((many[call] - few[call]) / span, 1) for call in calls}
    return counts


def is_grown(count, limit):
    return limit is not None and count > limit * TOLERANCE + 0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--table")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--acenic", action="store_true")
    parser.add_argument("--verbs", metavar="VERBS_CALLS")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        skip("valgrind is not installed")
    if os.uname().machine != "x86_64":
        skip(f"the recorded counts are of x86_64, this is {os.uname().machine}")
    programs = {mode: options.verbs if mode in VERBS else options.program for mode in CALLS
                if options.acenic or mode != ACENIC}
    counts = measure({mode: program for mode, program in programs.items() if program})
    if options.update:
        with open(options.table, "w", encoding="utf-8") as table:
            json.dump({mode: counts[mode] for mode in GUARDED if mode in counts}, table, indent=4)
            table.write("\n")
    recorded = {}
    if options.table:
        with open(options.table, encoding="utf-8") as table:
            recorded = json.load(table)
    # A helper thread in between makes the calls longer, never shorter: what has grown is counted again.
    for _ in range(2):
        again = [mode for mode, calls in counts.items() if any(is_grown(n, recorded.get(mode, {}).get(call)) for call, n in calls.items())]
        for mode, calls in measure({mode: programs[mode] for mode in again}).items():
            counts[mode] = {call: min(n, counts[mode][call]) for call, n in calls.items()}
    grown = []
    print(f"{'mode':13}{'call':14}{'instructions':>14}{'recorded':>10}")
    for mode, calls in counts.items():
        for call, count in calls.items():
            limit = recorded.get(mode, {}).get(call)
            print(f"{mode:13}{call:14}{count:14.1f}{'' if limit is None else f'{limit:10.1f}'}")
            if is_grown(count, limit):
                grown.append(f"{mode} {call}: {count} instructions, {limit} recorded")
        print(f"{mode:13}{'together':14}{sum(calls.values()):14.1f}")
    if grown:
        sys.exit("More instructions than recorded:\n" + "\n".join(grown))


main()
