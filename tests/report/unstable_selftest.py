#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""unstable.py on small tests of ctest: each fails in one way of running, always or never.
usage: unstable_selftest.py CTEST"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import eventually  # noqa: E402

UNSTABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unstable.py")
CTEST = sys.argv.pop(1)
LIMIT = 60  # seconds until a process has begun or ended
# Ends with 1 where 0.6 s of processor time take more than 0.9 s: under the quota of unstable.py they take at least 1.05 s. Without it
# they may take as long on a busy machine: a run contains this test only where it must fail.
UNDER_A_QUOTA = """
import sys, time
wall = time.monotonic()
while time.thread_time() < 0.6:
    pass
took = time.monotonic() - wall
print(f"FAILED: 0.6 s took {took:.2f} s")
sys.exit(took > 0.9)
"""
ONE_PROCESSOR = "import os, sys; print('FAILED: one processor'); sys.exit(len(os.sched_getaffinity(0)) == 1)"
# The processor time, in ticks of the clock, of each busy loop that the same unstable.py, the parent of ctest, has started.
LOOPS = r"""
import os, sys
def fields(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()
grandparent = fields(os.getppid())[1]
def loops():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                if fields(pid)[1] == grandparent and "while True: pass" in file.read():
                    yield int(fields(pid)[11])
        except OSError:
            pass
"""
BESIDE_A_LOOP = LOOPS + "if any(True for _ in loops()): sys.exit('FAILED: a busy loop')"
# Ends with 1 when as many loops as arguments say have had 0.1 s of processor time each. Reaches its deadline otherwise.
BESIDE_LOOPS_THAT_RUN = LOOPS + """
count, ticks = int(sys.argv[1]), os.sysconf("SC_CLK_TCK") / 10
while sum(used >= ticks for used in loops()) != count:
    pass
sys.exit(f"FAILED: {count} loops have run")
"""


def text_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def runs(pid):
    return text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] not in ([], ["Z"])


class Unstable(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(os.path.join(self.folder, "tmp"))
        self.add_test("good", "/bin/true")

    def add_test(self, name, *command, **properties):
        """Adds a test of ctest."""
        words = " ".join(f"[==[{word}]==]" for word in command)
        listed = " ".join(f'{key} "{value}"' for key, value in properties.items())
        with open(os.path.join(self.folder, "CTestTestfile.cmake"), "a", encoding="utf-8") as file:
            file.write(f"add_test([==[{name}]==] {words})\n")
            if listed:
                file.write(f"set_tests_properties([==[{name}]==] PROPERTIES {listed})\n")

    def shell(self, name, script, **properties):
        self.add_test(name, "/bin/sh", "-c", script, **properties)

    def sleeper(self):
        """Adds a test that writes its process to the file `begun`, and sleeps."""
        self.shell("sleeps", f"echo $$ >'{self.folder}/part' && mv '{self.folder}/part' '{self.folder}/begun' && exec sleep 100")

    def begin(self, *words):
        process = subprocess.Popen([sys.executable, UNSTABLE, "--build", self.folder, "--ctest", CTEST, *words], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env=dict(os.environ, TMPDIR=os.path.join(self.folder, "tmp")))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_all(self, *words):
        """(status, lines)"""
        process = self.begin("--rounds", "1", *words)
        said = process.communicate()[0]
        return process.returncode, said.splitlines()

    def until(self, condition):
        eventually("the condition of the caller", condition, limit=LIMIT)

    def process_of_the_sleeper(self):
        self.until(lambda: text_of(os.path.join(self.folder, "begun")))
        pid = int(text_of(os.path.join(self.folder, "begun")))
        ctest = int(text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()[1])
        # ctest writes into the folder when its test ends, whether unstable.py runs or not.
        self.addCleanup(self.until, lambda: not runs(ctest))
        self.addCleanup(lambda: runs(pid) and os.kill(pid, signal.SIGKILL))
        return pid

    def skip_without_quota(self, lines):
        for line in lines:
            if line.startswith("SKIPPED: at half a processor"):
                self.skipTest(line)

    def test_each_way_is_counted_for_itself(self):
        self.shell("bad", "echo begun; echo FAILED: always; exit 3")
        self.add_test("loops", sys.executable, "-c", BESIDE_A_LOOP)
        ways = ["beside busy loops", "at half a processor", "pinned"]
        tests = [("bad", ways, "FAILED: always"), ("loops", ways[:1], "FAILED: a busy loop")]
        if len(os.sched_getaffinity(0)) > 1:
            self.add_test("one", sys.executable, "-c", ONE_PROCESSOR)
            tests.append(("one", ways[2:], "FAILED: one processor"))
        status, lines = self.run_all()
        if any(line.startswith("SKIPPED: at half a processor") for line in lines):
            ways.remove("at half a processor")
        counts = {name: ", ".join(f"{way} {int(way in fails)} of 1" for way in ways) for name, fails, _ in tests}
        table = [f"{name}: {counts[name]}; first failure: {line}" for name, _, line in tests]
        self.assertEqual(status, 1, lines)
        self.assertEqual(lines[-len(table) - 1:], [*table, f"{len(table)} of {len(table) + 1} tests failed, 0 skipped"])

    def test_busy_loops_take_processor_time(self):
        count = 2 * len(os.sched_getaffinity(0))
        self.add_test("waits", sys.executable, "-c", BESIDE_LOOPS_THAT_RUN, str(count), TIMEOUT=120)
        status, lines = self.run_all("--way", "busy")
        self.assertEqual(status, 1, lines)
        self.assertEqual(lines[-2], f"waits: beside busy loops 1 of 1; first failure: FAILED: {count} loops have run")

    def test_the_quota_takes_processor_time(self):
        self.add_test("measures", sys.executable, "-c", UNDER_A_QUOTA)
        status, lines = self.run_all("--way", "half")
        self.skip_without_quota(lines)
        self.assertEqual(status, 1, lines)
        self.assertRegex(lines[-2], r"^measures: at half a processor 1 of 1; first failure: FAILED: 0\.6 s took")

    def test_none_fails(self):
        status, lines = self.run_all("--way", "pinned")
        self.assertEqual((status, lines[1:]), (0, ["0 of 1 tests failed, 0 skipped"]))

    def test_only_the_named_run(self):
        for name in ("a.one", "a.two", "axtwo", "b[0]/x+"):
            self.shell(name, "exit 1")
        lines = self.run_all("--way", "pinned", "good", "--minutes", "5", "a.t*", "b[0]/x+")[1]
        self.assertEqual([line.split(":")[0] for line in lines[-3:-1]], ["a.two", "b[0]/x+"])
        self.assertEqual(lines[-1], "2 of 3 tests failed, 0 skipped")

    def test_wrong_arguments(self):
        self.assertEqual(self.run_all("good", "absent")[0], 2)
        self.assertEqual(self.run_all("absent.*")[0], 2)
        self.assertEqual(self.run_all("--way", "upright")[0], 2)
        self.assertEqual(self.run_all("--rounds", "0")[0], 2)
        self.assertEqual(self.run_all("--build", "/nowhere")[0], 2)

    def test_labels_that_do_not_run_unasked(self):
        self.shell("sources", "exit 1", LABELS="quick;arrows")
        self.shell("reads", "exit 1", DEPENDS="good")
        self.assertEqual(self.run_all("--way", "pinned")[0], 0)
        self.assertEqual(self.run_all("--way", "pinned", "sources")[0], 1)

    def test_a_test_that_skips_itself_is_named_once(self):
        self.shell("skips", f"echo >>'{self.folder}/runs'; echo SKIPPED: no; exit 77", SKIP_RETURN_CODE=77)
        status, lines = self.run_all("--way", "pinned", "--rounds", "3")
        self.assertEqual((status, lines.count("SKIPPED: skips (pinned): SKIPPED: no"), text_of(f"{self.folder}/runs")), (0, 1, "\n"), lines)
        self.assertEqual(lines[-1], "0 of 1 tests failed, 1 skipped")
        self.assertEqual(self.run_all("--way", "pinned", "skips")[0], 77)

    def test_a_test_that_hangs(self):
        self.shell("late", "echo begun; exec sleep 20", TIMEOUT=1)
        self.assertEqual(self.run_all("--way", "pinned", "late")[1][-2],
                         "late: pinned 1 of 1 (1 Timeout); first failure: Timeout after 1 s: begun")

    def test_a_fixture_that_fails(self):
        self.shell("prepares", "echo FAILED: to prepare; exit 1", FIXTURES_SETUP="place")
        self.shell("needs", "true", FIXTURES_REQUIRED="place")
        self.assertEqual(self.run_all("--way", "pinned", "needs")[1][-2],
                         "needs: pinned 1 of 1 (1 Not Run); first failure: Not Run after 0 s: fixture prepares: FAILED: to prepare")

    def test_a_process_left_behind_is_ended(self):
        self.shell("leaves", f"setsid sleep 100 >'{self.folder}/out' 2>&1 & echo $! >'{self.folder}/left'")
        self.assertEqual(self.run_all("--way", "pinned")[0], 0)
        self.assertFalse(runs(int(text_of(f"{self.folder}/left"))))

    def test_an_interrupted_run_prints_its_table(self):
        self.shell("bad", "echo FAILED: always; exit 3")
        self.sleeper()
        process = self.begin("--way", "pinned")
        sleeper = self.process_of_the_sleeper()
        process.send_signal(signal.SIGINT)
        lines = process.communicate()[0].splitlines()
        self.assertEqual((process.returncode, lines[-2:]),
                         (130, ["bad: pinned 1 of 1; first failure: FAILED: always", "1 of 2 tests failed, 0 skipped"]))
        self.assertFalse(runs(sleeper))

    def test_the_busy_loops_end_with_it(self):
        self.sleeper()
        process = self.begin("--way", "busy", "sleeps")
        self.process_of_the_sleeper()
        children = text_of(f"/proc/{process.pid}/task/{process.pid}/children").split()
        loops = [pid for pid in children if "while True: pass" in text_of(f"/proc/{pid}/cmdline")]
        self.assertEqual(len(loops), 2 * len(os.sched_getaffinity(0)))
        process.kill()
        self.until(lambda: not any(map(runs, loops)))

    def test_the_cgroup_is_removed_however_it_ends(self):
        self.sleeper()
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = self.begin("--way", "half", "sleeps", "good")
            self.until(lambda: process.poll() is not None or text_of(f"{self.folder}/begun"))
            if process.poll() is not None:
                self.skip_without_quota(process.stdout.read().splitlines())
            sleeper = self.process_of_the_sleeper()
            name = f"viaduct-unstable-{process.pid}"
            self.assertTrue(re.search(rf"/{name}$", text_of(f"/proc/{sleeper}/cgroup"), re.MULTILINE))
            process.send_signal(number)
            process.wait()
            self.until(lambda: not re.search(rf"/{name}\b", text_of(f"/proc/{sleeper}/cgroup")))
            os.remove(f"{self.folder}/begun")
            self.until(lambda: not any(name in folders for _, folders, _ in os.walk("/sys/fs/cgroup")))


if __name__ == "__main__":
    unittest.main()
