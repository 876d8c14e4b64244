# SPDX-License-Identifier: BSD-2-Clause
"""What ctest runs in a build folder: whether a test that a document names is run by one of its tests."""

import fnmatch
import glob
import json
import os
import re
import subprocess

# Where the cases of a GoogleTest program are: folder of sources, program in a build folder.
PROGRAMS = {
    "unit": ("tests/unit", "tests/unit/viaduct_unit"),
    "conformance": ("tests/conformance", "tests/conformance/viaduct_conformance"),
    "fault": ("tests/fault", "tests/fault/viaduct_fault"),
    "integration": ("tests/integration", "tests/integration/viaduct_integration"),
    "adi_unit_test": ("tests/adi", "tests/adi/adi_unit_test"),
    "viaduct_engine_unit": ("tests/engine", "tests/engine/viaduct_engine_unit"),
}
MODULE_TEST = "tests/adi/adi_module_test"
INSTANTIATED = re.compile(r"INSTANTIATE_T\w+_SUITE_P\(\s*(\w+)\s*,\s*(\w+)")


def filters_of(case):
    """For --gtest_filter: the case, whatever it is instantiated for."""
    return f"{case}:*/{case}:{case}/*:*/{case}/*"


def lets_through(filter_text, name):
    """Whether --gtest_filter=filter_text runs the case of that full name."""
    wanted, _, unwanted = filter_text.partition("-")
    matches = [any(fnmatch.fnmatchcase(name, part) for part in text.split(":") if part) for text in (wanted or "*", unwanted)]
    return matches[0] and not matches[1]


class Suite:
    def __init__(self, root, build, ctest):
        shown = subprocess.run([ctest, "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True).stdout
        self.names = set()
        self.commands = {}  # by the program's name
        for test in json.loads(shown)["tests"]:
            if any(p["name"] == "DISABLED" and p["value"] for p in test.get("properties", ())):
                continue
            self.names.add(test["name"])
            command = test.get("command")
            if command:
                self.commands.setdefault(os.path.basename(command[0]), []).append(command[1:])
        self.instances = {program: self.instances_in(os.path.join(root, folder)) for program, (folder, _) in PROGRAMS.items()}

    @staticmethod
    def instances_in(folder):
        instances = {}
        for path in glob.glob(os.path.join(folder, "*.cpp")):
            with open(path, encoding="utf-8") as file:
                for prefix, suite in INSTANTIATED.findall(file.read()):
                    instances.setdefault(suite, set()).add(prefix)
        return instances

    def runs_case(self, program, case):
        """`case` is a concrete Suite.Name as it is written in the source."""
        suite = case.split(".")[0]
        full = [f"{prefix}/{case}/0" for prefix in self.instances[program].get(suite, ())] or [case]
        full += [f"{suite}/0.{case.split('.')[1]}"]
        for arguments in self.commands.get(os.path.basename(PROGRAMS[program][1]), ()):
            filters = [a.removeprefix("--gtest_filter=") for a in arguments if a.startswith("--gtest_filter=")]
            if any(lets_through(f, name) for f in filters or ["*"] for name in full):
                return True
            # One instance by its full name, as ctest has those it was told by the program.
            if any(fnmatch.fnmatchcase(f, pattern) for f in filters for pattern in filters_of(case).split(":")):
                return True
        return False

    def runs_module_case(self, module, case):
        for arguments in self.commands.get(os.path.basename(MODULE_TEST), ()):
            if arguments[:1] == [module] and (len(arguments) == 1 or case in arguments[1:]):
                return True
        return False
