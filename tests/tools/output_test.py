#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the tools do when their output cannot be written, and with options that do nothing there.  Usage: output_test.py BINDIR VIPKAD

A tool whose output is not whole ends with a status other than 0 and says so; no option is left undone without a word."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402

BINDIR, VIPKAD = sys.argv[1:3]
ENVIRONMENT = {**{k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")},
               "VIADUCT_AGENT": os.environ.get("VIADUCT_AGENT", f"@viaduct-output-test-{os.getpid()}")}
WELL, PROBLEM, USAGE = 0, 1, 2


def run(*command, **options):
    return eventually.run([os.path.join(BINDIR, command[0]), *command[1:]], 60, stdin=subprocess.DEVNULL, env=ENVIRONMENT, **options)


class Output(unittest.TestCase):
    def test_a_full_disk_is_told(self):
        commands = [("vipinfo",), ("vipinfo", "--json"), ("vipinfo", "--doctor"), ("vipinfo", "--help"), ("vipinfo", "--version"),
                    ("vipstat",), ("vipstat", "--json"), ("vipstat", "--prometheus"), ("vipcap", "--version"),
                    ("viptrace", "--help"), ("vipping", "--help"), ("vipperf", "--help")]
        if os.path.exists(os.path.join(BINDIR, "cmpiinfo")):
            commands.append(("cmpiinfo", "--json"))
        for command in commands:
            with self.subTest(command), open("/dev/full", "w", encoding="utf-8") as full:
                done = run(*command, stdout=full)
                self.assertEqual(PROBLEM, done.returncode, done.stderr)
                self.assertIn(f"{command[0]}: standard output cannot be written: ", done.stderr)

    def test_a_reader_that_leaves_is_no_fault_of_others(self):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as closed:
            self.assertNotEqual(WELL, run("vipinfo", "--all", stdout=closed).returncode)


class Options(unittest.TestCase):
    def test_options_that_do_nothing_there_are_wrong(self):
        for command in (("vipcap", "-i", "lo", "--list"), ("vipcap", "-i", "lo", "--chart", "x.html"), ("vipcap", "-i", "lo", "-n", "2"),
                        ("vipcap", "-r", "x", "-w", "y"), ("vipcap", "-r", "x", "-c", "1"), ("vipcap", "-i", "lo", "-C", "1"),
                        ("vipcap", "-r", "x", "-n", "1"), ("vipcap", "-i", "lo", "-r", "x"), ("vipstat", "-n", "2"),
                        ("vipstat", "-i", "2"), ("vipstat", "--listen", "127.0.0.1:0", "--top"),
                        ("vipstat", "--listen", "127.0.0.1:0", "--json")):
            with self.subTest(command):
                done = run(*command, stdout=subprocess.PIPE)
                self.assertEqual((USAGE, ""), (done.returncode, done.stdout))
                self.assertIn("Run with --help", done.stderr)

    def test_ranges_are_told_in_numbers_that_can_be_read(self):
        for command in (("vipping", "-c", "0"), ("vipcap", "-i", "lo", "-c", "-1"), ("vipstat", "-p", "0"), ("vipstat", "--top", "-n", "0")):
            with self.subTest(command):
                done = run(*command, stdout=subprocess.PIPE)
                self.assertEqual(USAGE, done.returncode)
                self.assertRegex(done.stderr, r"not in range 1 to \d{1,10}\n")

    def test_a_processor_that_is_not_there(self):
        here = min(os.sched_getaffinity(0))
        done = run("vipperf", "--self", "--cpu", f"{here},9999", "-n", "5", stdout=subprocess.PIPE)
        self.assertEqual((PROBLEM, ""), (done.returncode, done.stdout))
        self.assertIn("cannot run on processor 9999", done.stderr)

    def test_the_agent_ends_as_the_tools_do(self):
        for arguments in (("--nonsense",), ("--log-level", "loud"), ("--linger-ms", "x")):
            done = eventually.run([VIPKAD, *arguments], 60, env=ENVIRONMENT)
            self.assertEqual(USAGE, done.returncode, done.stderr)

    def test_a_log_that_cannot_be_had_is_told(self):
        done = eventually.run([os.path.join(BINDIR, "vipinfo"), "--doctor"], 60, env={**ENVIRONMENT, "VIADUCT_LOG": "warning"})
        self.assertEqual(1, done.stderr.count("VIADUCT_LOG=warning is not one of off|error|warn|info|debug; nothing is logged"))
        self.assertIn("VIADUCT_LOG=warning is not one of off|error|warn|info|debug", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
