#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Texts of the library, the agent and the tools name only existing tools and options, settings, variables, calls, manual pages and options
of ulimit. Where a cure promises that a command shows something, the command shows it.  Usage: cures.py ROOT BUILD"""

import glob
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from cheat_sheet import TOOLS, Facts  # noqa: E402
from verdict import end, read, unnoticed  # noqa: E402

FOLDERS = ("vipl", "core", "kagent", "providers", "utils")
DAEMONS = {"viaduct-udpd": 8, "viaduct-acenicd": 8}
COMMANDS = {**TOOLS, **DAEMONS}
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
LITERALS = re.compile(rf"{LITERAL}(?:\s*{LITERAL})*")
USED = re.compile(rf"\b({'|'.join(COMMANDS)})((?: +--?[A-Za-z][\w-]*)+)")
VARIABLE = re.compile(r"\b(?:VIADUCT|CMPI)_[A-Z][A-Z_]*[A-Z]\b")
CALL = re.compile(r"\bVipx?[A-Z][A-Za-z]+\b")
PAGE = re.compile(r"\b([A-Za-z][\w.-]*)\(([1-8])\)")
LIMIT = re.compile(r"\bulimit -(\w)")
# Of the system; ours are in man/.
PAGES_OF_THE_SYSTEM = {"getaddrinfo(3)", "signal(7)"}
# Words of calls, but none of one: groups of calls.
NO_CALLS = {"VipConnect", "VipPost", "VipRecv", "VipSend", "VipNS"}


def literals(code):
    """Texts as they are shown: literals that stand beside each other are one."""
    for found in LITERALS.finditer(re.sub(r"^\s*(#include|//).*$", "", code, flags=re.M)):
        yield "".join(part[1:-1] for part in re.findall(LITERAL, found[0])).replace('\\"', '"')


def texts_of(root):
    """(file, text) of all that has a word of ours."""
    for folder in FOLDERS:
        for path in sorted(glob.glob(os.path.join(root, folder, "**", "*.[ch]pp"), recursive=True)):
            name = os.path.relpath(path, root)
            for text in literals(read(path)):
                if " " in text:
                    yield name, text


def faults(texts, facts, options, pages):
    for name, text in texts:
        for tool, used in USED.findall(text):
            for option in used.split():
                if option not in options[tool]:
                    yield f"{name}: {tool} has no option {option}: {text}"
        for variable in VARIABLE.findall(text):
            made = variable.removeprefix("VIADUCT_").removeprefix("CMPI_").lower().replace("_", ".", 1)
            if variable not in facts.variables and made not in facts.settings:
                yield f"{name}: {variable} is no variable: {text}"
        for setting in re.findall(rf"(?<![\w./-])((?:{'|'.join(sorted(facts.sections))})\.[a-z_]+)\b(?!\.|\()", text):
            if setting not in facts.settings and not setting.endswith((".so", ".toml", ".hpp", ".cpp", ".sock")):
                yield f"{name}: {setting} is no setting: {text}"
        for call in CALL.findall(text):
            if call not in facts.calls and call not in NO_CALLS:
                yield f"{name}: {call} is no call: {text}"
        for page, section in PAGE.findall(text):
            if f"{page}.{section}" not in pages and f"{page}({section})" not in PAGES_OF_THE_SYSTEM:
                yield f"{name}: there is no page {page}({section}): {text}"
        for letter in LIMIT.findall(text):
            if letter not in "acdefilmnpqrstuvx":
                yield f"{name}: ulimit has no -{letter}: {text}"


def run(build, tool, *arguments, **variables):
    folder = "sbin" if COMMANDS[tool] == 8 else "bin"
    environment = {**{k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")}, "LD_LIBRARY_PATH": os.path.join(build, "lib"),
                   "VIADUCT_AGENT": os.environ.get("VIADUCT_AGENT", "@viaduct-test-cures-%d" % os.getpid()), **variables}
    return subprocess.run([os.path.join(build, folder, tool), *arguments], capture_output=True, text=True, check=False, env=environment)


def options_of(build, root):
    """Of the tools as they are built; of one that is not built, those of its manual page."""
    found = {}
    for tool, section in COMMANDS.items():
        page = read(root, f"man/{tool}.{section}.md")
        listed = set(re.findall(r"\*\*(--?[A-Za-z][\w-]*)\*\*", page))
        if os.path.exists(os.path.join(build, "sbin" if section == 8 else "bin", tool)):
            shown = run(build, tool, "--help").stdout
            listed |= {o for line in re.findall(r"^ +(-\S+)", shown, re.M) for o in line.split(",")}
            listed &= {o for o in listed if o in page or o in shown}
        found[tool] = listed
    return found


def promises(build):
    """Faults of what commands show, for each cure that promises it: (cure, what was run, a pattern of its output)."""
    rejected = {"VIADUCT_PARAMNET_SWITCHES": "99", "VIADUCT_AGENT": "@viaduct-test-cures-%d-rejected" % os.getpid()}
    rows = [
        ("vipinfo shows the names of NICs", run(build, "vipinfo"), r"(?m)^paramnet0 +paramnet +[0-9a-f:]{17} "),
        ("vipinfo --providers shows all NICs, and why others are missing, with a cure for each",
         run(build, "vipinfo", "--providers", **rejected), r"paramnet +NIC paramnet rejected: paramnet\.switches = 99 is no number[^\n]*\n +cure: set paramnet\.switches"),
        ("look at the link: vipinfo --links", run(build, "vipinfo", "--links"), r"(?m)^ +lo +.*up="),
        ("what it waits at (vipinfo --waiters)", run(build, "vipinfo", "--waiters"), r"(?m)^Calls that wait to be connected.*:\n  none$"),
        ("vipinfo --doctor", run(build, "vipinfo", "--doctor"), r"(?m)^ok +kernel agent "),
        ("VIADUCT_LOG=info shows what agent and provider say", run(build, "vipinfo", "--doctor", VIADUCT_LOG="info"),
         r"(?m)^viaduct\[\d+\] \S+ info agent: "),
    ]
    for cure, done, wanted in rows:
        if not re.search(wanted, done.stdout + done.stderr):
            yield f"\"{cure}\": {' '.join(done.args[1:])} shows no {wanted}:\n{done.stdout}{done.stderr}"


def main():
    root, build = sys.argv[1:3]
    facts = Facts(root)
    facts.sections = {setting.split(".")[0] for setting in facts.settings}
    facts.variables |= set(VARIABLE.findall("".join(read(path) for path in glob.glob(os.path.join(root, "man", "*.md")))))
    pages = {os.path.basename(path)[:-len(".md")] for path in glob.glob(os.path.join(root, "man", "*.md"))}
    options, texts = options_of(build, root), list(texts_of(root))
    found = list(faults(texts, facts, options, pages)) + list(promises(build))
    # Texts with one thing wrong at a time are noticed.
    page = "\n".join(text for _, text in texts)
    changes = [("vipinfo --doctor", "vipinfo --doctors"), ("VIADUCT_LOG=info", "VIADUCT_LOGS=info"), ("acenic.mode", "acenic.modes"),
               ("VipPostRecv", "VipPostReceive"), ("viaduct.toml(5)", "viaduct.tomb(5)"), ("ulimit -n", "ulimit -z")]
    found += unnoticed(page, changes, lambda changed: faults([("texts", line) for line in changed.split("\n")], facts, options, pages))
    named = sum(bool(USED.search(text) or VARIABLE.search(text) or LIMIT.search(text)) for _, text in texts)
    end(found, f"{len(texts)} texts, {named} of them name a tool with an option, a variable or a limit", named > 80)


if __name__ == "__main__":
    main()
