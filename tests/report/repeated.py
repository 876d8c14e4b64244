# SPDX-License-Identifier: BSD-2-Clause
"""Runs ctest, and runs each test that failed twice more, alone, after all the others have ended.

A test that passes both times is unstable: it counts as passed and the closing lines name it. A test that fails again has failed. A test that
names its failed rows (ctest_cases.Case.failed_rows) gets them in TEST_ROWS, one a line, and runs these rows only."""

import collections
import json
import os
import subprocess
import tempfile
import time

import ctest_cases
import totals

# Tests without a clock, which fail at once and always: they are not repeated.
STEADY_LABELS = {"arrows", "header"}
REPETITIONS = 2


def run_ctest(command, rows=None):
    """The cases of one run; none when ctest did not write a report."""
    environment = dict(os.environ)
    environment.pop("TEST_ROWS", None)
    if rows:
        environment["TEST_ROWS"] = "\n".join(rows)
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        # A failed test's output beyond ctest's limit loses its beginning, not the end, where the failed rows stand.
        subprocess.run([*command, "--output-junit", report, "--test-output-truncation", "head"], env=environment, check=False)
        return ctest_cases.read(report) if os.path.exists(report) else []


def alone(command, name):
    """The command for one test: without --parallel, and with its name as a pattern that no other name matches."""
    words = list(command)
    if "--parallel" in words:
        at = words.index("--parallel")
        del words[at:at + 2]
    return [*words, "-R", "^" + "".join(c if c.isalnum() or c in "_-/" else f"[{c}]" for c in name) + "$"]


def properties(command):
    """name: {property: value} of each test."""
    said = subprocess.run([*command, "--show-only=json-v1"], stdout=subprocess.PIPE, check=True).stdout
    return {test["name"]: {p["name"]: p["value"] for p in test.get("properties", [])} for test in json.loads(said)["tests"]}


def passes_again(command, case, until):
    """Whether the test passes REPETITIONS times; and why not."""
    rows = case.failed_rows()
    for number in range(REPETITIONS):
        if until and time.time() >= until:
            return "not repeated: no time is left"
        print(f"\nrepeated alone, {number + 1} of {REPETITIONS}: {case.name} {' '.join(rows)}", flush=True)
        words = alone(command, case.name)
        if until:
            words += ["--stop-time", time.strftime("%H:%M:%S", time.localtime(until))]
        again = [c for c in run_ctest(words, rows) if c.name == case.name]
        if not again or not again[0].has_passed_again(case):
            return f"failed again: {again[0].reason() if again else 'ctest did not run it'}"
    return ""


def run(state, title, command, until=None):
    """Adds one run of ctest to the totals. `until` ends the repetitions: seconds since 1970, as of time.time()."""
    cases = run_ctest(command)
    if not cases:
        state.add_failed(f"{title}: ctest ran no test", [" ".join(command)])
        return
    counts = collections.Counter(case.judgement for case in cases)
    state.passed += counts["passed"]
    state.skipped += counts["skipped"]
    failed = [case for case in cases if case.judgement == "failed"]
    known = properties(command) if failed else {}
    # A test that reads the results of other tests comes after them.
    failed.sort(key=lambda case: "DEPENDS" in known.get(case.name, {}))
    # Where too many have failed, the run fails whatever they do alone.
    hopeless = len(failed) + len(state.unstable) > totals.UNSTABLE_LIMIT
    for case in failed:
        rows = case.failed_rows()
        name = f"{title}: {case.name}" + (f" [{', '.join(rows)}]" if rows else "")
        lines = [f"{case.seconds:.0f} s, first failure: {case.reason()}", *case.last_lines()]
        if STEADY_LABELS & set(known.get(case.name, {}).get("LABELS", [])):
            state.add_failed(name, lines)
            continue
        why = "not repeated: too many tests have failed" if hopeless else passes_again(command, case, until)
        if why:
            state.add_failed(name, [why, *lines])
        else:
            state.add_unstable(name, case.reason(), lines)
