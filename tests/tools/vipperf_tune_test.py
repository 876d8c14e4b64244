#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vipperf_tune_test.py PATH-OF-VIPPERF: measures this machine, which needs it alone, and keeps what it has found."""
import os
import re
import tempfile
import unittest

import tool
from tool import PROBLEM, WELL, Case, run


@unittest.skipIf(len(os.sched_getaffinity(0)) == 1, "needs two processors")
class Tune(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "made", "tuning.toml")

    def measure(self, *options):
        return run("--tune", "--rounds", "1", *options, VIADUCT_TUNING=self.path)

    def test_keeps_what_it_has_measured_and_measures_no_second_time(self):
        result = self.measure()
        if result.returncode == PROBLEM and "keep the processors busy" in result.stderr:
            self.assertFalse(os.path.exists(self.path))
            self.skipTest("other programs keep the processors busy")
        self.expect(result, WELL, r"(?s)64 KiB.*paramnet.stream_from = \d+.*paramnet.block_bytes = \d+.*kept in " + re.escape(self.path))
        with open(self.path, encoding="ascii") as file:
            text = file.read()
        self.assertRegex(text, r'(?s)processor = ".+kernel = ".+measured = ".+stream_from = \d+\nblock_bytes = \d+\npull_from = \d+\n')
        self.expect(self.measure("--if-needed"), WELL, r"\A[^\n]* was measured on this machine, 20[^\n]*\n\Z")
        # The NIC works with it.
        self.assertEqual(1 << 20, self.parsed("--self", "--check", "-b", "1M", "-n", "20", VIADUCT_TUNING=self.path)
                         ["tests"][0]["rows"][0]["bytes"])


if __name__ == "__main__":
    tool.main()
