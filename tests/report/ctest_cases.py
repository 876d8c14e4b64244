# SPDX-License-Identifier: BSD-2-Clause
"""Reads the file that ctest writes for its option --output-junit: the judgement of each test, what the test wrote, which of its rows failed.

Only a test that says itself why it cannot run here (SKIP_RETURN_CODE, SKIP_REGULAR_EXPRESSION) or that is disabled counts as skipped. A test
that ctest could not start has failed."""

import json
import re
import xml.etree.ElementTree

LAST_LINES = 40
REASON_LENGTH = 200
# Lines by which the test programs of this tree, GoogleTest, ctest and the sanitizers report a failure.
REASON = re.compile(r"\b(FAILED|RED|BAD|Failure|ERROR|SUMMARY|Traceback|[Ee]rror:|[Tt]imed? ?out|[Aa]ssertion)\b")
# The first line, and the end, of the output of a GoogleTest program that has run all its tests. A script that runs such a program writes lines of
# its own first, or runs it with --gtest_brief: it does not read TEST_ROWS.
GOOGLE_BEGIN = re.compile(r"\s*(Running main\(\)|Note: |\[==========\] Running)")
GOOGLE_LIST = re.compile(r"^\[----------\] Global test environment tear-down\n(?:.*\n)*\[  FAILED  \] \d+ tests?, listed below:\n"
                         r"((?:\[  FAILED  \] .*\n)+)\n *\d+ FAILED TESTS?\s*\Z", re.MULTILINE)
ROWS_LINE = re.compile(r"^FAILED ROWS: (\[.*\])$", re.MULTILINE)


class Case:
    """One test of one run of ctest."""

    def __init__(self, element):
        self.name = element.get("name")
        self.seconds = float(element.get("time"))
        self.written = (element.findtext("system-out") or "").rstrip()
        skipped = element.find("skipped")
        if element.get("status") == "run":
            self.judgement = "passed"
        elif element.get("status") == "disabled" or (skipped is not None and skipped.get("message", "").startswith("SKIP_")):
            self.judgement = "skipped"
        else:
            self.judgement = "failed"

    def last_lines(self):
        lines = self.written.splitlines()
        left_out = len(lines) - LAST_LINES
        return ([f"[{left_out} lines before]"] if left_out > 0 else []) + lines[-LAST_LINES:]

    def reason(self):
        """The first line that reports a failure, else the last line, at most REASON_LENGTH characters of it."""
        lines = [line.strip() for line in self.written.splitlines() if line.strip()]
        if not lines:
            return f"no output in {self.seconds:.0f} s"
        for number, line in enumerate(lines):
            if REASON.search(line):
                # GoogleTest gives the place in one line, the values in the next two.
                found = " ".join(lines[number:number + 3]) if line.endswith(": Failure") else line
                return found[:REASON_LENGTH]
        return lines[-1][:REASON_LENGTH]

    def failed_rows(self):
        """The rows that failed, where the test has run all its rows and names them; else nothing: then the whole test has failed."""
        said = ROWS_LINE.findall(self.written)
        if not said:
            return self._failed_google_tests()
        try:
            rows = json.loads(said[-1])
        except ValueError:
            return []
        return rows if all(isinstance(row, str) and row and "\n" not in row for row in rows) else []

    def _failed_google_tests(self):
        listed = GOOGLE_BEGIN.match(self.written) and GOOGLE_LIST.search(self.written)
        return [line[len("[  FAILED  ] "):].split(", where ")[0] for line in listed.group(1).splitlines()] if listed else []

    def has_passed_again(self, first):
        """Whether this run of the failed rows of `first` has passed. GoogleTest passes, too, where it has run no test at all."""
        return self.judgement == "passed" and all(f"[       OK ] {test}" in self.written for test in first._failed_google_tests())


def read(report):
    return [Case(element) for element in xml.etree.ElementTree.parse(report).getroot().iter("testcase")]
