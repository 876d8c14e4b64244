#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The rule for failed tests, on small tests of ctest: counts and names, repetitions, rows, the limit of unstable tests, the time limit.
usage: selftest.py CTEST"""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
CTEST = sys.argv.pop(1)
sys.path.insert(0, HERE)
import totals

GOOGLE = r"""
run() { echo "[==========] Running 1 test from 1 test suite."; }
ended() { echo "[----------] Global test environment tear-down"; echo "[==========] 1 test from 1 test suite ran. (1 ms total)"; }
listed() {
    run; ended
    printf '[  PASSED  ] 0 tests.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] All/Suite.Case/0, where GetParam() = 1\n\n 1 FAILED TEST\n'
    exit 1
}
passed() { run; echo "[       OK ] All/Suite.Case/0 (1 ms)"; ended; exit 0; }
"""


class Rule(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.state = os.path.join(self.folder, "state")
        self.tests = []

    def add(self, name, script, **properties):
        """Adds a test of ctest. Its script runs in a folder of its own, where `runs` has a line for each run."""
        place = os.path.join(self.folder, name)
        os.mkdir(place)
        with open(os.path.join(place, "script"), "w", encoding="utf-8") as file:
            file.write(f"cd '{place}'; echo >>runs; number=$(wc -l <runs)\n{script}\n")
        words = " ".join(f"{key} \"{value}\"" for key, value in properties.items())
        self.tests.append(f'add_test({name} "/bin/sh" "{place}/script")\n' + (f"set_tests_properties({name} PROPERTIES {words})\n" if words else ""))

    def report(self, *words):
        return subprocess.run([sys.executable, os.path.join(HERE, "phases.py"), self.state, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)

    def run_all(self, *options):
        with open(os.path.join(self.folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
            file.write("".join(self.tests))
        return self.report("run", "release", *options, "--", CTEST, "--test-dir", self.folder, "--parallel", "4")

    def close(self):
        """(status, closing lines)"""
        said = self.report("close")
        return said.returncode, said.stdout.splitlines()

    def runs(self, name):
        with open(os.path.join(self.folder, name, "runs"), encoding="utf-8") as file:
            return len(file.readlines())

    def test_counts_each_outcome(self):
        self.add("good", "echo well")
        self.add("skips", "echo SKIPPED: no; exit 77", SKIP_RETURN_CODE=77)
        self.add("says", "echo SKIPPED: no", SKIP_REGULAR_EXPRESSION="SKIPPED")
        self.add("off", "exit 1", DISABLED="ON")
        self.run_all()
        self.assertEqual(self.close(), (0, ["", "1 passed, 0 failed, 3 skipped"]))

    def test_a_test_that_always_fails_has_failed(self):
        self.add("good", "true")
        self.add("bad", r"seq 100; printf 'x\001y\033[1m<&>\n'; exit 3")
        self.run_all()
        status, lines = self.close()
        self.assertEqual((status, self.runs("bad"), self.runs("good")), (1, 2, 1))
        self.assertEqual(lines[-2:], ["FAILED: release: bad", "1 passed, 1 failed, 0 skipped"])
        self.assertIn("[61 lines before]", lines)
        self.assertIn("62", lines)
        self.assertNotIn("61", lines)
        self.assertTrue(any("<&>" in line for line in lines))

    def test_a_program_that_is_missing_has_failed(self):
        self.tests.append('add_test(absent "/nowhere/program")\n')
        self.run_all()
        status, lines = self.close()
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))
        self.assertTrue(any("/nowhere/program" in line for line in lines))

    def test_a_test_that_fails_once_is_unstable(self):
        self.add("once", "echo some text; echo FAILED: the first time; [ $number -gt 1 ]")
        self.run_all()
        status, lines = self.close()
        self.assertEqual((status, self.runs("once")), (0, 3))
        self.assertEqual(lines[-2:], ["UNSTABLE: release: once (2 of 3; first failure: FAILED: the first time)", "1 passed, 0 failed, 0 skipped"])

    def test_a_test_that_fails_twice_of_three_has_failed(self):
        self.add("twice", "[ $number -eq 2 ]")
        self.run_all()
        self.assertEqual((self.close()[0], self.runs("twice")), (1, 3))

    def test_a_test_that_fails_in_a_crowd_is_repeated_alone(self):
        for name, other in (("one", "two"), ("two", "one")):
            # The first runs of both wait for each other, and fail. A repetition fails only beside the other.
            self.add(name, f"""
                touch running came
                if [ $number -eq 1 ]; then
                    for k in $(seq 300); do [ -e ../{other}/came ] && break; sleep 0.1; done
                    status=1
                else
                    [ ! -e ../{other}/running ]; status=$?
                fi
                rm running
                exit $status""")
        self.run_all()
        status, lines = self.close()
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed, 0 skipped"))
        self.assertEqual([line.split(" (")[0] for line in lines if line.startswith("UNSTABLE")], ["UNSTABLE: release: one", "UNSTABLE: release: two"])

    def test_a_test_that_hangs_has_failed(self):
        self.add("late", "echo begun; exec sleep 20", TIMEOUT=1)
        self.run_all()
        status, lines = self.close()
        self.assertEqual((status, self.runs("late"), lines[-2]), (1, 2, "FAILED: release: late"))
        self.assertIn("begun", lines)

    def test_a_test_that_hangs_once_is_unstable(self):
        self.add("late", "[ $number -gt 1 ] || exec sleep 20", TIMEOUT=1)
        self.run_all()
        self.assertEqual(self.close()[1][-2], "UNSTABLE: release: late (2 of 3; first failure: no output in 1 s)")

    def test_a_test_without_a_clock_is_not_repeated(self):
        self.add("sources", "[ $number -gt 1 ]", LABELS="arrows")
        self.run_all()
        self.assertEqual((self.close()[0], self.runs("sources")), (1, 1))

    def test_only_the_failed_rows_are_repeated(self):
        self.add("rows", "echo \"$TEST_ROWS\" >>asked\nif [ -z \"$TEST_ROWS\" ]; then echo 'FAILED ROWS: [\"a b\", \"c\"]'; exit 1; fi")
        self.run_all()
        self.assertEqual(self.close()[1][-2][:40], "UNSTABLE: release: rows [a b, c] (2 of 3")
        with open(os.path.join(self.folder, "rows", "asked"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "\na b\nc\na b\nc\n")

    def test_google_tests_are_repeated_by_name(self):
        self.add("share", GOOGLE + '[ -n "$TEST_ROWS" ] || listed; [ "$TEST_ROWS" = All/Suite.Case/0 ] && passed; exit 1')
        self.run_all()
        self.assertEqual(self.close()[1][-2][:51], "UNSTABLE: release: share [All/Suite.Case/0] (2 of 3")

    def test_a_repetition_without_the_google_test_has_failed(self):
        self.add("share", GOOGLE + '[ -n "$TEST_ROWS" ] || listed; run; exit 0')
        self.run_all()
        self.assertEqual(self.close()[0], 1)

    def test_a_google_program_that_ends_early_is_repeated_whole(self):
        self.add("share", GOOGLE + '[ -n "$TEST_ROWS" ] && exit 1; [ $number -gt 1 ] || { (listed); echo ERROR: LeakSanitizer; exit 1; }')
        self.run_all()
        self.assertEqual(self.close()[1][-2][:33], "UNSTABLE: release: share (2 of 3;")

    def test_a_script_that_runs_a_google_program_is_repeated_whole(self):
        self.add("script", GOOGLE + 'echo its own line; [ -z "$TEST_ROWS" ] || exit 1; [ $number -gt 1 ] || listed')
        self.run_all()
        self.assertEqual(self.close()[1][-2][:34], "UNSTABLE: release: script (2 of 3;")

    def test_a_test_of_results_is_repeated_after_the_tests_that_write_them(self):
        self.add("a_table", "[ -e ../b_subject/record ]", DEPENDS="b_subject")
        self.add("b_subject", "[ $number -gt 1 ] && touch record")
        self.run_all()
        self.assertEqual(self.close()[0], 0)

    def test_too_many_unstable_tests_fail(self):
        log = os.path.join(self.folder, "log")
        with open(log, "w", encoding="utf-8") as file:
            file.write("crash\n")
        for number in range(totals.UNSTABLE_LIMIT):
            self.report("unstable", f"fuzz: {number}", log)
        self.assertEqual(self.close(), (0, self.close()[1]))
        self.report("unstable", "fuzz: last", log)
        self.assertEqual(self.close()[0], 1)

    def test_where_too_many_have_failed_none_is_repeated(self):
        for number in range(totals.UNSTABLE_LIMIT + 1):
            self.add(f"once{number}", "[ $number -gt 1 ]")
        self.run_all()
        self.assertEqual((self.close()[0], self.runs("once0")), (1, 1))

    def test_two_calls_with_one_file_are_one_run(self):
        with open(self.state, "w", encoding="utf-8") as file:
            json.dump({"began": 1234567890}, file)
        self.add("good", "exit 0")
        self.add("once", "[ $number -ne 1 ]")
        self.run_all()
        self.assertEqual(self.report("began").stdout, "1234567890\n")
        os.remove(os.path.join(self.folder, "once", "runs"))
        self.run_all()
        status, lines = self.close()
        self.assertEqual((status, lines[-1]), (0, "4 passed, 0 failed, 0 skipped"))
        self.assertEqual(sum(line.startswith("UNSTABLE: release: once") for line in lines), 2)

    def test_the_limit_of_unstable_tests_counts_both_calls(self):
        self.add("once", "[ $number -ne 1 ]")
        for _ in range(totals.UNSTABLE_LIMIT + 1):
            self.report("unstable", "fuzz: one", "/dev/null")
        self.run_all()
        self.assertEqual(self.close()[0], 1)

    def test_a_test_is_not_repeated_when_no_time_is_left(self):
        self.add("once", "[ $number -gt 1 ]")
        self.run_all("--until", str(time.time() - 1))
        status, lines = self.close()
        self.assertEqual((status, self.runs("once")), (1, 1))
        self.assertIn("not repeated: no time is left", lines)

    def test_a_repetition_that_hangs_ends_in_time(self):
        self.add("late", "[ $number -eq 1 ] || exec sleep 60; exit 1", TIMEOUT=300)
        begin = time.time()
        self.run_all("--until", str(begin + 3))
        self.assertEqual(self.close()[0], 1)
        self.assertLess(time.time() - begin, 30)

    def test_a_run_without_tests_has_failed(self):
        self.run_all()
        self.assertEqual(self.close()[0], 1)

    def test_a_failed_phase_and_one_left_out_are_named(self):
        self.report("count", "3", "1")
        self.report("left-out", "fuzz: 74 minutes are over")
        self.assertEqual(self.close(), (0, ["", "LEFT OUT: fuzz: 74 minutes are over", "3 passed, 0 failed, 1 skipped"]))
        self.report("failed", "Debian's trixie", "/dev/null")
        self.assertEqual(self.close()[0], 1)


if __name__ == "__main__":
    unittest.main()
