# SPDX-License-Identifier: BSD-2-Clause
"""The totals of all test phases of a run, kept in a file of JSON between the phases, and the closing lines. Calls of ./viaduct test that name the
same file (--totals) are one run: one limit of unstable tests, one beginning, one closing line."""

import json
import os
import time

# More unstable tests than this in one run make the run fail.
UNSTABLE_LIMIT = 20


class Totals:
    def __init__(self, path):
        self._path = path
        self.began = int(time.time())
        self.passed = self.skipped = 0
        self.failed, self.unstable, self.left_out, self.ends = [], [], [], []
        if os.path.exists(path) and os.path.getsize(path):
            with open(path, encoding="utf-8") as file:
                self.__dict__.update(json.load(file))

    def save(self):
        with open(self._path, "w", encoding="utf-8") as file:
            json.dump({name: value for name, value in self.__dict__.items() if name != "_path"}, file)

    def add_failed(self, name, lines):
        self.failed.append(name)
        self.ends.append("\n".join([f"-- {name}", *lines]))

    def add_unstable(self, name, first_failure, lines):
        """A test that failed once and passed twice counts as passed, and is named."""
        self.passed += 1
        self.unstable.append(f"{name} (2 of 3; first failure: {first_failure})")
        self.ends.append("\n".join([f"-- {name}, the first failure", *lines]))

    def close(self):
        """Prints the closing lines; whether the run is good."""
        if len(self.unstable) > UNSTABLE_LIMIT:
            self.failed.append(f"{len(self.unstable)} unstable tests, more than {UNSTABLE_LIMIT}")
        print("\n".join(self.ends))
        for word, names in (("LEFT OUT", self.left_out), ("UNSTABLE", self.unstable), ("FAILED", self.failed)):
            for name in names:
                print(f"{word}: {name}")
        print(f"{self.passed} passed, {len(self.failed)} failed, {self.skipped} skipped")
        return not self.failed and self.passed > 0
