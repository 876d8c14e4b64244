#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs each test that docs/obligations.md and docs/obligations-mpi.md name, once, and says which rows have one that
fails (`./viaduct obligations`).  Usage: run_obligations.py ROOT BUILD CTEST [ROW...]"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import obligations  # noqa: E402
import suite  # noqa: E402

SECONDS = 3600
SKIPPED = 77


def run(command, build, agent):
    environment = dict(os.environ, VIADUCT_AGENT=f"@viaduct-obligations-{os.getpid()}-{agent}")
    try:
        done = subprocess.run(
            command, cwd=build, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=SECONDS, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"").decode(errors="replace") + f"\nnot done after {SECONDS} s\n"


def results_of_program(program, cases, build):
    """{case: it passed}, and what was said. A pattern with which nothing runs has failed."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [os.path.join(build, suite.PROGRAMS[program][1])]
        command += ["--gtest_filter=" + ":".join(suite.filters_of(case) for case in cases), f"--gtest_output=json:{report.name}"]
        _, said = run(command, build, program)
        text = report.read()
    results = {}
    for group in json.loads(text)["testsuites"] if text else ():
        for test in group["testsuite"]:
            # As in the source: without the prefix of the instance and without its number.
            name = re.sub(r"^(?:\w+/)?(\w+?)(?:/\d+)?\.(\w+?)(?:/.*)?$", r"\1.\2", f"{group['name']}.{test['name']}")
            results[name] = results.get(name, True) and not test.get("failures")
    found = {}
    for case in cases:
        matching = [good for name, good in results.items() if obligations.covers(case, name)]
        found[f"{program} {case}"] = bool(matching) and all(matching)
    return found, said


def results_of_module(module, cases, build):
    """`cases` without any: all of them."""
    command = [os.path.join(build, suite.MODULE_TEST), module, *([] if "" in cases else sorted(cases))]
    code, said = run(command, build, module)
    ends = {}
    for name, end in re.findall(r"^(\S+) +\d+ processes +[\d.]+ s +(ok|FAILED)$", said, re.MULTILINE):
        ends[name] = ends.get(name, True) and end == "ok"
    found = {}
    for case in cases:
        name = f"adi_module_test {module} {case}".strip()
        found[name] = code == 0 if case == "" else ends.get(case, False)
    return found, said


def results_of_ctest(names, build, ctest):
    # "^(a|b)$"; each with the agent and the deadline that it has.
    pattern = "^(" + "|".join(re.escape(name) for name in sorted(names)) + ")$"
    _, said = run([ctest, "-R", pattern, "--output-on-failure"], build, "ctest")
    ends = dict(re.findall(r"Test +#\d+: (\S+) \.*(?: |\*)*(Passed|Skipped|Failed|Timeout|Exception|Not Run)", said))
    return {f"ctest {name}": ends.get(name) in ("Passed", "Skipped") for name in names}, said


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    root, build, ctest, *rows = sys.argv[1:]
    named = {row: names for row, names in obligations.named_tests(root).items() if not rows or row in rows}
    programs, modules, others = {}, {}, set()
    for name in sorted(set().union(*named.values())):
        words = name.split()
        if name == "adi_module_test *":  # every case of a module: those that rows name stand for them
            continue
        if words[0] == "ctest":
            others.add(words[1])
        elif words[0] == "adi_module_test":
            modules.setdefault(words[1], set()).add(words[2] if len(words) > 2 else "")
        else:
            programs.setdefault(words[0], []).append(words[1])
    jobs = [(program, results_of_program, (program, cases, build)) for program, cases in programs.items()]
    jobs += [(module, results_of_module, (module, cases, build)) for module, cases in modules.items()]
    jobs += [("ctest", results_of_ctest, (others, build, ctest))] if others else []
    results = {}
    for what, how, arguments in jobs:
        start = time.monotonic()
        found, said = how(*arguments)
        results.update(found)
        bad = sorted(name for name, good in found.items() if not good)
        print(f"{what}: {len(found)} named, {len(bad)} failed, {time.monotonic() - start:.0f} s", flush=True)
        if bad:
            print("\n".join(said.splitlines()[-80:]))
    failed = 0
    for row, names in named.items():
        bad = sorted(name for name in names if results.get(name) is False)
        failed += 1 if bad else 0
        for name in bad:
            print(f"{row}: `{name}` failed")
    print(f"{len(results)} tests named, {len(named)} rows, {failed} of them with a test that failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
