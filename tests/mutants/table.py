# SPDX-License-Identifier: BSD-2-Clause
"""All mutants (one file for each part), how their tests are run, and what is wrong with the tables."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs"))
import acenic  # noqa: E402
import agent  # noqa: E402
import device  # noqa: E402
import obligations  # noqa: E402
import providers  # noqa: E402
import robust  # noqa: E402
import suite  # noqa: E402
import verbs  # noqa: E402
import waits  # noqa: E402
import wire  # noqa: E402

MUTANTS = [m for part in (device, robust, providers, wire, agent, acenic, verbs, waits) for m in part.MUTANTS]


def how_to_run(test, build):
    """(command, target) of a test by the name that docs/obligations.md would use. The target of a test of ctest is one of its
    mutant's, and it is None here."""
    words = test.split()
    if words[0] == "ctest":
        return ["ctest", "--test-dir", build, "--no-tests=error", "-R", f"^{words[1]}$"], None
    if words[0] == "adi_module_test":
        return [os.path.join(build, suite.MODULE_TEST), *words[1:]], "adi_module_test"
    program = suite.PROGRAMS[words[0]][1]
    return [os.path.join(build, program), "--gtest_filter=" + suite.filters_of(words[1])], os.path.basename(program)


def changed_text(root, mutant):
    """{file: what is in it then}."""
    texts = {}
    for path, old, new in mutant.changes:
        text = texts.get(path)
        if text is None:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                text = file.read()
        times = text.count(old)
        if times != 1:
            raise ValueError(f"{path} has its text {times} times")
        texts[path] = text.replace(old, new)
    return texts


def faults(root):
    tests = obligations.Tests(root, None, None)
    named = obligations.named_tests(root)
    seen = set()
    for m in MUTANTS:
        if m.name in seen:
            yield f"{m.name}: is there twice"
        seen.add(m.name)
        try:
            changed_text(root, m)
        except (ValueError, OSError) as fault:
            yield f"{m.name}: does not apply: {fault}"
        for test in m.tests:
            why = tests.why_not(test)
            if why or (test.startswith("ctest ") and len(m.targets) < 2):
                yield f"{m.name}: names `{test}`: {why or 'which has no target of its own'}"
        for row in m.rows:
            if row not in named:
                yield f"{m.name}: there is no row {row}"
            elif not any(obligations.covers(name, test) for name in named[row] for test in m.tests):
                yield f"{m.name}: {row} names none of the tests that kill it"
