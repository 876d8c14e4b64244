# SPDX-License-Identifier: BSD-2-Clause
"""One change of the product, and the tests that notice it."""

from dataclasses import dataclass


@dataclass
class Mutant:
    name: str
    rows: tuple  # of docs/obligations*.md, which each name one of the tests
    what: str
    file: str
    old: str  # is in the file once
    new: str
    tests: tuple  # each of them fails
    quick: bool = False  # among those that ctest runs
    also: tuple = ()  # further (file, old, new)
    targets: tuple = ("viaduct_runtime",)  # besides the programs of the tests

    @property
    def changes(self):
        return ((self.file, self.old, self.new), *self.also)
