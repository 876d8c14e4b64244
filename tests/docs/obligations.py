#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the tables of docs/obligations.md and docs/obligations-mpi.md: each row of the lists is there once; each file
that a row names exists; each test it names can be run by that name.  Usage: obligations.py ROOT [BUILD CTEST]

With BUILD also: a test of ctest runs each of them (suite.py); run_obligations.py does that once and for all.  A test is written as
    PROGRAM Suite.Name      a case of a GoogleTest program of tests/, as in --gtest_filter
    adi_module_test MODULE [CASE]
    ctest NAME              for `ctest -R '^NAME$'`
A row has a file and a test, or its last column begins with "not here:" and says why.

docs/obligations-mpi.md is shorter: MODULE/CASE, `Suite.Name` of adi_unit_test ("…" for whatever follows), `name` of
ctest; files without the folders of the device; a name beside files is one that occurs in them."""

import fnmatch
import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from suite import PROGRAMS, Suite  # noqa: E402
from verdict import end, read  # noqa: E402

ROWS = {"C": 8, "P": 52, "N": 45, "B": 17, "T": 20}
MODULES = ["via", "shm", "tcp", "rails", "dgram"]
GTEST = re.compile(r"^\s*(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*(\w+)\s*,\s*(\w+)", re.MULTILINE)
ADDED = re.compile(r"^\s*viaduct_test\((\S+)", re.MULTILINE)
CASE = re.compile(r'\{\s*"([\w-]+)",\s*\w+,\s*\w+,\s*\w+(?:,\s*(nullptr|"[^"]*"))?')


class Tests:
    def __init__(self, root, build, ctest):
        self.gtest = {}
        for program, (folder, _) in PROGRAMS.items():
            names = self.gtest[program] = set()
            for path in glob.glob(os.path.join(root, folder, "*.cpp")):
                names.update(f"{suite}.{name}" for _, suite, name in GTEST.findall(read(path)))
        self.cases = {}
        for path in glob.glob(os.path.join(root, "tests/adi/*.cpp")):
            for name, only in CASE.findall(read(path)):
                self.cases.setdefault(name, set()).add(only.strip('"') if only != "nullptr" else "")
        # Those a build has; one without some part may lack tests that are written out.
        self.ctest = set()
        for path in glob.glob(os.path.join(root, "tests/*/CMakeLists.txt")):
            self.ctest.update(name for name in ADDED.findall(read(path)) if "$" not in name)
        self.suite = Suite(root, build, ctest) if build else None
        if build:
            self.ctest.update(self.suite.names)

    def runs(self, module, case):
        for only in self.cases.get(case, ()):
            if only == "" or only == module or (only.startswith("!") and only[1:] != module):
                return True
        return False

    def why_not(self, name):
        """None when it can be run."""
        words = name.split()
        if words[0] == "ctest" and len(words) == 2:
            return "no test of ctest" if self.suite and words[1] not in self.ctest else None
        if words[0] == "adi_module_test" and len(words) in (2, 3):
            if words[1] not in MODULES:
                return "no module"
            if len(words) == 3 and not self.runs(words[1], words[2]):
                return "no case of that module"
            if self.suite and not self.suite.runs_module_case(words[1], words[-1] if len(words) == 3 else None):
                return "no test of ctest runs it"
            return None
        if words[0] in PROGRAMS and len(words) == 2:
            known = [case for case in self.gtest[words[0]] if fnmatch.fnmatchcase(case, words[1])]
            if not known:
                return f"no case in {PROGRAMS[words[0]][0]}"
            idle = sorted(case for case in known if self.suite and not self.suite.runs_case(words[0], case))
            return f"no test of ctest runs {idle[0]}" if idle else None
        return "is not the name of a test"


def rows_of(text):
    """(number of the line, cells) of each row of the lists."""
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and re.fullmatch(r"[CPNBT]\d+", cells[0]):
            yield number, cells


DEVICE_ROWS = 70
DEVICE_FOLDERS = ["", "include", "mpi-adi/transport", "mpi-adi/transport/via", "mpi-adi/transport/adi"]
# What stands for many cases.
ALL_CASES = re.compile(r"every (via )?case|all cases|the conformance suite|static assertion")


DEVICE_PAGE = "docs/obligations-mpi.md"


def lines_of_device(root):
    """(number of the line, cells) of each row of that page."""
    for number, line in enumerate(read(os.path.join(root, DEVICE_PAGE)).splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) >= 3 and cells[1] not in ("Obligation", "File", "---"):
            yield number, cells


def device_rows(cell):
    """The numbers that "C1–C4, C6" names."""
    for part in re.split(r",\s*", cell):
        ends = re.fullmatch(r"C(\d+)(?:–C(\d+))?", part)
        if ends:
            yield from range(int(ends[1]), int(ends[2] or ends[1]) + 1)


def device_file_faults(root, cell):
    """Faults of the names in a column of files."""
    words = re.findall(r"`([^`]+)`", cell)
    files = []
    for word in [word for word in words if re.search(r"[/.]", word)]:
        paths = [path for folder in DEVICE_FOLDERS if os.path.exists(path := os.path.join(root, folder, word))]
        if not paths:
            yield f"names {word}, which is not there"
        files.extend(path for path in paths if os.path.isfile(path))
    text = "".join(read(path) for path in files)
    for word in [word for word in words if not re.search(r"[/.]", word)]:
        if not re.search(rf"\b{re.escape(word)}\b", text):
            yield f"names {word}, which none of its files has"


def device_test_names(root, cell):
    """(names of tests, faults) of a column of tests."""
    cases = re.findall(rf"\b({'|'.join(MODULES)})/([\w-]+)", cell)
    names, wrong = [f"adi_module_test {module} {case}" for module, case in cases], []
    known = False
    for word in re.findall(r"`([^`]+)`", cell):
        if "/" in word:
            known = True
            if not os.path.exists(os.path.join(root, word)):
                wrong.append(f"names {word}, which is not there")
        elif word[0].isupper():
            names.append("adi_unit_test " + word.replace("…", "*"))
        elif word.split()[0] in PROGRAMS:
            names.append(word)
        else:
            names.append("ctest " + word)
    if ALL_CASES.search(cell):
        names.append("adi_module_test *")
    if not names and not known:
        wrong.append("has no test")
    return names, wrong


def device_test_faults(root, tests, cell):
    if re.match(r"not here: \S.{15}", cell):
        return
    names, wrong = device_test_names(root, cell)
    yield from wrong
    for name in names:
        why = None if name == "adi_module_test *" else tests.why_not(name)
        if why:
            yield f"names `{name}`: {why}"


def device_faults(root, tests):
    page = DEVICE_PAGE
    seen = []
    for number, cells in lines_of_device(root):
        where = f"{page}:{number}: {cells[0]}"
        rows = list(device_rows(cells[0]))
        if len(cells) != (4 if rows else 3):
            yield f"{where} has {len(cells)} cells"
            continue
        seen.extend(rows)
        for fault in device_file_faults(root, cells[-2]):
            yield f"{where} {fault}"
        for fault in device_test_faults(root, tests, cells[-1]):
            yield f"{where} {fault}"
    for row in range(1, DEVICE_ROWS + 1):
        if seen.count(row) != 1:
            yield f"{page}: C{row} is there {seen.count(row)} times"


def faults(root, build=None, ctest=None):
    page = "docs/obligations.md"
    tests = Tests(root, build, ctest)
    yield from device_faults(root, tests)
    seen = {}
    for number, cells in rows_of(read(os.path.join(root, page))):
        where = f"{page}:{number}: {cells[0]}"
        if len(cells) != 4:
            yield f"{where} has {len(cells)} cells, not 4"
            continue
        row, what, done_by, shown_by = cells
        seen[row] = seen.get(row, 0) + 1
        if len(what) < 10:
            yield f"{where} does not say what is asked"
        files = re.findall(r"`([^`\s]+/[^`\s]+)`", done_by)
        for file in files:
            if not os.path.exists(os.path.join(root, file)):
                yield f"{where} names {file}, which is not there"
        if re.match(r"not here: \S.{15}", shown_by):
            continue
        names = re.findall(r"`([^`]+)`", shown_by)
        if not files or not names:
            yield f"{where} has no file or no test, and does not say why"
        for name in names:
            why = tests.why_not(name)
            if why:
                yield f"{where} names `{name}`: {why}"
    for letter, count in ROWS.items():
        for i in range(1, count + 1):
            times = seen.pop(f"{letter}{i}", 0)
            if times != 1:
                yield f"{page}: {letter}{i} is there {times} times"
    for row in seen:
        yield f"{page}: there is no row {row}"


def named_tests(root):
    """{row: names of tests} of both pages; "adi_module_test *" for all cases."""
    named = {}
    for _, cells in rows_of(read(os.path.join(root, "docs/obligations.md"))):
        named.setdefault(cells[0], set()).update(re.findall(r"`([^`]+)`", cells[-1]) if "not here:" not in cells[-1] else ())
    for _, cells in lines_of_device(root):
        names, _ = device_test_names(root, cells[-1])
        for row in device_rows(cells[0]) or ():
            named.setdefault(f"C{row}", set()).update(names)
    return named


def covers(name, test):
    """Whether a run of `name` also runs `test`."""
    if name == test or name == "adi_module_test *" and test.startswith("adi_module_test "):
        return True
    if name.startswith("ctest adi."):
        return covers("adi_module_test " + name.removeprefix("ctest adi."), test)
    if name.startswith("adi_module_test "):
        return len(name.split()) == 2 and test.startswith(name + " ")
    return fnmatch.fnmatchcase(test, name)


def main():
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    found = list(faults(*sys.argv[1:]))
    end(found, f"{sum(ROWS.values()) + DEVICE_ROWS} rows, {len(found)} faults")


if __name__ == "__main__":
    main()
