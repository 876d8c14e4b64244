#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What VI over Ethernet has to show, at length: each line is a command of its own, which is printed with what came of it.

    shown.py --build BUILD [--only WORD] [--list]

The whole takes about ten minutes; --only runs the lines that have the word in their name. Latency and throughput beside bare frames,
UDP and TCP are `./viaduct bench --ports`, the fuzzer of frames is one of `./viaduct fuzz`.
"""
import argparse
import os
import subprocess
import sys
import time

from hosts import SKIPPED

HERE = os.path.dirname(os.path.abspath(__file__))


def lines(build):
    """name, command."""
    suite = ["--suite", build + "/tests/conformance/viaduct_conformance"]
    programs = ["--bin", build + "/tests/legacy"]
    runner = ["--runner", os.path.join(HERE, "..", "legacy", "run.py")]

    def script(name, *words):
        return [sys.executable, os.path.join(HERE, name + ".py"), *words]

    for over in ("af_packet", "memif"):
        for mode in ("exclusive", "shared"):
            how = ["--over", over, "--mode", mode]
            yield "legacy programs, %s, %s" % (over, mode), script("two_hosts", *programs, *how)
            yield "conformance, %s, %s" % (over, mode), script("conformance", *suite, *how)
            yield "storm, %s, %s" % (over, mode), script("storm", "--build", build, *how, "--messages", "300000" if mode == "exclusive" else
                                                         "100000")
    yield "legacy programs, one port", script("shared", *programs, *runner, "--only", "legacy")
    yield "conformance, one port", script("shared", *programs, *runner, *suite, "--only", "conformance")
    yield "killed for a minute, one port", script("shared", *programs, *runner, "--only", "killed", "--seconds", "60")
    for level in ("U", "RD", "RR"):  # of these, at the reliable levels, 25 % are reads and atomics
        yield "wire alone, %s" % level, [build + "/tests/wire/wire_storm", "--level", level, "--messages", "7000000"]


def shown(word):
    if word == sys.executable:
        return "python3"
    return os.path.relpath(word) if os.path.isabs(word) else word


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build tree")
    parser.add_argument("--only", default="", help="a word of the name")
    parser.add_argument("--list", action="store_true", help="print the commands and run none")
    options = parser.parse_args()
    failed = []
    for name, command in lines(os.path.abspath(options.build)):
        if options.only not in name:
            continue
        print("== %s\n   %s" % (name, " ".join(shown(word) for word in command)), flush=True)
        if options.list:
            continue
        began = time.monotonic()
        code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
        print("   %s, %.0f s" % ({0: "good", SKIPPED: "SKIPPED"}.get(code, "FAILED"), time.monotonic() - began), flush=True)
        if code not in (0, SKIPPED):
            failed.append(name)
    if failed:
        print("failed: " + "; ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
