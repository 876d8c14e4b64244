#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tests/eventually.py on a clock and figures that the test moves, and on processes that end at once."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import eventually  # noqa: E402
from eventually import Late  # noqa: E402


class Moved:
    """A machine whose time passes in its pauses. Of each second, `queue` seconds are wait in a run queue of the processes
    and `stall` seconds of any task; None where the kernel counts none."""

    def __init__(self, queue=0.0, stall=0.0):
        self.at = 1000.0
        self.queue, self.stall = queue, stall
        self.looks = []

    def wall(self):
        return self.at

    def pause(self, seconds):
        self.at += seconds

    def queued(self, pids):
        self.looks.append(pids)
        return None if self.queue is None else 7 + self.queue * self.at

    def stalled(self):
        return None if self.stall is None else 7 + self.stall * self.at

    def waits(self, limit=10, pids=(41, 42)):
        """Seconds by the wall clock until a wait for nothing is late, and the sentence."""
        begun = self.at
        try:
            eventually.eventually("the moon", lambda: False, pids, limit, self)
        except Late as late:
            return self.at - begun, str(late)
        raise AssertionError("no end")


class Eventually(unittest.TestCase):
    def test_the_value_of_the_condition_ends_the_wait(self):
        machine = Moved()
        begun = machine.at
        self.assertEqual(eventually.eventually("two seconds", lambda: machine.at >= begun + 2 and "there", machine=machine), "there")
        self.assertAlmostEqual(machine.at - begun, 2, delta=0.1)

    def test_a_condition_that_holds_takes_no_pause(self):
        machine = Moved()
        eventually.eventually("nothing", lambda: True, machine=machine)
        self.assertEqual(machine.at, 1000)

    def test_without_load_the_limit_is_wall_time(self):
        self.assertAlmostEqual(Moved().waits()[0], 10, delta=0.1)

    def test_the_limit_leaves_out_the_wait_in_run_queues(self):
        self.assertAlmostEqual(Moved(queue=0.75).waits()[0], 40, delta=0.5)

    def test_the_pressure_counts_where_processes_have_no_figures(self):
        self.assertAlmostEqual(Moved(queue=None, stall=0.5).waits()[0], 20, delta=0.5)

    def test_the_pressure_does_not_count_where_processes_have_figures(self):
        self.assertAlmostEqual(Moved(queue=0, stall=0.5).waits()[0], 10, delta=0.1)

    def test_without_any_figures_the_limit_is_wall_time(self):
        self.assertAlmostEqual(Moved(queue=None, stall=None).waits()[0], 10, delta=0.1)

    def test_a_look_at_the_figures_is_no_running_time(self):
        class Slow(Moved):
            def queued(self, pids):
                self.at += 3
                return super().queued(pids)
        machine = Slow()
        time_used = eventually.RunningTime(machine=machine)
        machine.at += 1
        self.assertAlmostEqual(time_used.running(), 1)
        self.assertAlmostEqual(time_used.running(), 4, msg="time after the construction counts")

    def test_a_hang_ends_at_twenty_times_the_limit(self):
        # Four threads that stand in run queues all the time.
        self.assertAlmostEqual(Moved(queue=4).waits()[0], 200, delta=0.5)

    def test_a_thread_that_ends_takes_no_time_back(self):
        machine = Moved(queue=0.5)
        real = machine.queued
        machine.queued = lambda pids: real(pids) - (400 if machine.at > 1005 else 0)
        self.assertAlmostEqual(machine.waits()[0], 20, delta=1)

    def test_figures_that_begin_late_are_no_growth(self):
        machine = Moved(queue=0.5, stall=None)
        real = machine.queued
        machine.queued = lambda pids: None if machine.at < 1005 else real(pids)
        self.assertAlmostEqual(machine.waits()[0], 15, delta=1)

    def test_the_failure_says_what_and_how_long(self):
        said = Moved(queue=0.5).waits()[1]
        self.assertRegex(said, r"the moon; waited 2\d\.\d s, of which processes 41, 42 were able to run 1\d\.\d s")

    def test_the_failure_says_what_each_process_does(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        said = Moved().waits(pids=[os.getpid(), ended.pid])[1]
        self.assertRegex(said, rf"; now: {os.getpid()} python3\S* R\b.*, {ended.pid} ended$")

    def test_the_given_processes_are_read_or_else_this_one(self):
        machine = Moved()
        machine.waits(pids=[5])
        self.assertEqual(set(machine.looks), {(5,)})
        machine.looks.clear()
        machine.waits(pids=())
        self.assertEqual(set(machine.looks), {(os.getpid(),)})

    def test_the_condition_is_looked_at_once_more_after_the_limit(self):
        machine = Moved()

        def after_a_long_stop():
            machine.at += 1000
            return machine.at > 2500
        self.assertTrue(eventually.eventually("the second look", after_a_long_stop, machine=machine))

    def test_holds_reports_and_raises_nothing(self):
        self.assertFalse(eventually.holds(lambda: False, machine=Moved()))
        self.assertTrue(eventually.holds(lambda: True, machine=Moved()))


class Ends(unittest.TestCase):
    def test_the_end_code(self):
        with subprocess.Popen(["sh", "-c", "exit 7"]) as process:
            self.assertEqual(eventually.finished(process), 7)

    def test_run_gives_code_output_and_errors(self):
        done = eventually.run(["sh", "-c", "cat; echo bad >&2; exit 3"], given="good")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "good", "bad\n"))

    def test_all_of_a_long_input_comes(self):
        done = eventually.run(["sh", "-c", "sleep 0.3; wc -c"], given=1000 * 1000 * "x")
        self.assertEqual(done.stdout.strip(), "1000000")

    def test_run_checks(self):
        with self.assertRaises(subprocess.CalledProcessError):
            eventually.run(["false"], check=True)

    def test_a_process_that_is_late_is_killed_and_its_output_told(self):
        read, write = os.pipe()
        self.addCleanup(os.close, write)
        self.addCleanup(os.close, read)
        with self.assertRaisesRegex(Late, "the end of .*cat") as caught:
            eventually.run(["sh", "-c", "echo begun; exec cat"], limit=0.3, stdin=read)
        self.assertEqual(caught.exception.out, "begun\n")


class Figures(unittest.TestCase):
    def test_a_family_is_a_process_and_all_below_it(self):
        with subprocess.Popen(["sh", "-c", "sh -c 'echo $$; cat; true'; true"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as process:
            grandchild = int(process.stdout.readline())
            self.assertLessEqual({process.pid, grandchild}, eventually.families([os.getpid()]))
            self.assertNotIn(os.getpid(), eventually.families([process.pid]))
            process.stdin.close()

    def test_parents_are_read_once_for_each_process(self):
        at, there, read = [0.0], [[1, 2]], []

        def parent(pid):
            read.append(pid)
            return pid - 1
        parents = eventually.Parents(lambda: there[0], parent, lambda: at[0])
        self.assertEqual(parents.now(), {1: 0, 2: 1})
        there[0] = [2, 3]
        self.assertEqual(parents.now(), {1: 0, 2: 1}, "too soon for another look")
        at[0] = eventually.READ_EVERY
        self.assertEqual(parents.now(), {2: 1, 3: 2})
        self.assertEqual(read, [1, 2, 3])
        there[0] = [1, 2]
        at[0] *= 2
        self.assertEqual(parents.now(), {1: 0, 2: 1})
        self.assertEqual(read, [1, 2, 3, 1], "1 may be the number of another process")

    def test_a_name_with_brackets_and_blanks_is_no_number(self):
        with subprocess.Popen([sys.executable, "-c", "open('/proc/self/comm', 'w').write(') 1 (x'); print(flush=True); input()"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            self.assertIn(process.pid, eventually.families([os.getpid()]))
            process.stdin.write("\n")
            process.stdin.close()

    def test_a_sleeper_sleeps_from_one_look_to_the_next(self):
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            sleeps = eventually.Sleeps(process.pid)
            self.assertFalse(sleeps())
            eventually.eventually("cat reads", sleeps)
            process.stdin.write(b"a")
            process.stdin.flush()
            process.stdout.read(1)
            self.assertFalse(sleeps())
        self.assertFalse(sleeps())

    def test_a_process_that_has_ended_has_no_figures(self):
        process = subprocess.Popen(["true"])
        process.wait()
        self.assertIsNone(eventually.queued([process.pid]))


if __name__ == "__main__":
    unittest.main()
