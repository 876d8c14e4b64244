#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Looks at every file that git knows with the checkers that are installed: shellcheck (shell), pyflakes (Python), codespell
(all text), and for blanks at the end of lines, tabs in C++ and lines that are too long.
usage: lint.py [--tidy BUILD_FOLDER [FILE...]] SOURCE_FOLDER

A checker that is not installed is SKIPPED by name; --strict makes that a fault. --tidy runs clang-tidy (.clang-tidy) over the
files named, or over all that the build folder compiles."""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

LONGEST = {".cpp": 120, ".hpp": 120, ".h": 120, ".py": 200}
# Words of MPI, of C, and names that codespell takes for slips.
WORDS = "inout,keep-alives,improbe,pullrequest,fro,receiv,kown,te,alph,iif,inflight"
NOT_TEXT = re.compile(r"^tests/fuzz/corpus/|\.(png|svg|pcap|bin|gz)$")


def first_line(path):
    with open(path, "rb") as file:
        return file.readline(80).decode("utf-8", "replace")


def files_of(source):
    """By git; in a tree without it, all but the build folder."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.rstrip("\0").split("\0")
    else:
        names = []
        for folder, folders, found in os.walk(source):
            folders[:] = [name for name in folders if not name.startswith((".", "build"))]
            names += [os.path.relpath(os.path.join(folder, name), source) for name in found]
    return [name for name in names if os.path.isfile(os.path.join(source, name)) and not NOT_TEXT.search(name)]


class Lint:
    def __init__(self, source):
        self.source = source
        self.faults = 0
        self.missing = []

    def say(self, text):
        self.faults += 1
        print(text)

    def run(self, tool, arguments, files):
        if shutil.which(tool) is None:
            self.missing.append(tool)
            print(f"lint: {tool} is SKIPPED: it is not installed")
            return
        if not files:
            return
        done = subprocess.run([tool, *arguments, *files], cwd=self.source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        for line in done.stdout.splitlines():
            self.say(f"{tool}: {line}")
        if done.returncode != 0 and not done.stdout:
            self.say(f"{tool}: status {done.returncode}")

    def look_at_lines(self, name):
        with open(os.path.join(self.source, name), "rb") as file:
            try:
                text = file.read().decode("utf-8")
            except UnicodeDecodeError:
                return self.say(f"{name}: not UTF-8")
        longest = LONGEST.get(os.path.splitext(name)[1])
        cpp = name.endswith((".cpp", ".hpp"))
        fenced = False
        for number, line in enumerate(text.split("\n"), 1):
            if name.endswith(".md") and line.lstrip().startswith("```"):
                fenced = not fenced
            # A table of figures keeps what the program printed.
            if line != line.rstrip() and not fenced:
                self.say(f"{name}:{number}: blanks at the end of the line")
            if cpp and "\t" in line:
                self.say(f"{name}:{number}: a tab")
            if cpp and "reinterpret_cast<uint64_t>" in line:
                self.say(f"{name}:{number}: an address is a uintptr_t; of a shorter pointer the sign would be extended")
            if longest is not None and len(line) > longest:
                self.say(f"{name}:{number}: {len(line)} columns, {longest} are allowed")
        if text and not text.endswith("\n"):
            self.say(f"{name}: the last line has no end")
        return None


def for_clang(command):
    """The command without what only gcc understands: its precompiled headers, and some of its options. clang 14 has
    _Float16 on x86 with these instructions only."""
    if platform.machine() == "x86_64":
        command = command.replace(" -c ", " -mavx512fp16 -c ")
    return re.sub(r" (-include \S*cmake_pch\S*|-Winvalid-pch|-fno-fat-lto-objects|-Wno-subobject-linkage)(?= )", "", command)


def compilations(build):
    """What the build folder compiles. A file that holds several others (#include "/path") stands for each of these."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            path = os.path.join(entry["directory"], entry["file"])
            joined = []
            if "/Unity/" in path and os.path.exists(path):
                with open(path, encoding="utf-8") as unity:
                    joined = re.findall(r'^#include "(/.*)"$', unity.read(), re.M)
            for one in joined or [path]:
                yield {**entry, "file": one, "command": for_clang(entry["command"].replace(entry["file"], one))}


def tidy(source, build, wanted):
    """Every file that the build folder compiles and that is ours."""
    entries = {os.path.relpath(entry["file"], source): entry for entry in compilations(build)}
    files = wanted or sorted(name for name in entries if not name.startswith(("build", "..")) and name.endswith(".cpp"))
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump(list(entries.values()), file)
        return subprocess.run(["run-clang-tidy", "-quiet", "-p", folder,
                               *["/" + re.escape(name) + "$" for name in files]], cwd=source, check=False).returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--tidy", metavar="BUILD_FOLDER")
    parser.add_argument("source")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    source = os.path.abspath(options.source)
    if options.tidy:
        return tidy(source, os.path.abspath(options.tidy), options.files)

    lint = Lint(source)
    names = files_of(source)
    if not names:
        lint.say("lint: no file was found")
    shells = [name for name in names if re.match(r"#!.*\b(ba|da)?sh\b", first_line(os.path.join(source, name)))]
    pythons = [name for name in names
               if name.endswith(".py") or re.match(r"#!.*\bpython3?\b", first_line(os.path.join(source, name)))]
    # Functions that are called by name in a variable are no dead code.
    lint.run("shellcheck", ["-x", "-S", "warning", "-e", "SC2317", "-f", "gcc"], shells)
    lint.run("pyflakes3", [], pythons)
    lint.run("codespell", ["--quiet-level", "35", "-L", WORDS], names)
    for name in names:
        lint.look_at_lines(name)
    if options.strict and lint.missing:
        lint.say("lint: not installed: " + ", ".join(lint.missing))
    print(f"lint: {len(names)} files, {lint.faults} faults")
    if lint.faults:
        return 1
    return 77 if len(lint.missing) == 3 else 0


if __name__ == "__main__":
    sys.exit(main())
