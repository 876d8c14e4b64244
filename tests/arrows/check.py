#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the house rules that a compiler does not see, over all tracked files:
the direction of includes, the licence line of each source file, that no file names the
machine it was written on, and that the MPI device drops no answer of VIPL.  Usage: check.py ROOT"""

import os
import re
import shutil
import subprocess
import sys

# Which folder may include which.  The longest prefix of a file's path decides; a folder not named here (tests) is free.
# "include/" stands for vipl.h and viaduct/*, which are reached through the include path.
ALLOWED = {
    "include/": ["include/"],
    "core/": ["include/", "core/"],
    "vipl/": ["include/", "core/", "vipl/"],
    "kagent/": ["include/", "core/", "kagent/"],
    "providers/": ["include/", "core/", "providers/wire/", "providers/packet/"],  # and its own folder, added below
    "providers/wire/": ["include/", "core/", "providers/wire/"],
    "utils/cmpiinfo/": ["include/", "core/", "utils/", "mpi-adi/"],  # shows what the engine has found
    "utils/": ["include/", "core/", "utils/"],
    "mpi-adi/": ["core/", "mpi-adi/"],
    # The only one that reaches VIPL: it declares each call that is made so that no answer is dropped (see below).
    "mpi-adi/transport/adi/vip_calls.hpp": ["include/vipl.h", "include/viaduct/ext.h"],
}
# What the device would get at NICs by, past VIPL.
FORBIDDEN = {"mpi-adi/": ["core/agent/", "core/provider/", "core/vi/"]}
DECLARES = "mpi-adi/transport/adi/vip_calls.hpp"
GENERATED = {"core/config/paths.hpp"}

SOURCE = re.compile(r"(\.(c|h|cpp|hpp|in|py|sh|cmake|map)|CMakeLists\.txt|^viaduct|^\.ci/run)$")
CODE = re.compile(r"\.(c|h|cpp|hpp)$")
NO_COMMENTS = re.compile(r"\.pc\.in$")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')

# Written so that this file does not find itself.
MACHINE = re.compile(r"/wor[k]/|/tmp/[v]\b|\.pyen[v]\b|deb\.debian\.org|security\.debian\.org|registry\.npmjs\.org")


def tracked_files(root):
    """What git tracks, or, without git, every file outside build folders."""
    if os.path.exists(os.path.join(root, ".git")) and shutil.which("git"):
        git = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z"], capture_output=True, check=True
        )
        names = git.stdout.decode().split("\0")
        return [n for n in names if n and os.path.isfile(os.path.join(root, n))]
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in (".git", "build")]
        found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return found


def target_of(root, path, quote, name):
    """The path in the tree that an include means, or None for a system header."""
    if name in GENERATED:
        return name
    candidates = [name, os.path.join("include", name)]
    if quote == '"':
        candidates.insert(0, os.path.normpath(os.path.join(os.path.dirname(path), name)))
    for candidate in candidates:
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def allowed_from(path):
    for prefix, targets in sorted(ALLOWED.items(), reverse=True):  # the longest prefix first
        if path.startswith(prefix):
            if prefix == "providers/":
                return targets + ["/".join(path.split("/")[:2]) + "/"]
            return targets
    return None


def forbidden_from(path):
    return [target for prefix, targets in FORBIDDEN.items() if path.startswith(prefix) for target in targets]


def include_faults(root, path, lines):
    allowed = allowed_from(path)
    forbidden = tuple(forbidden_from(path))
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        quote, name = found.groups()
        target = target_of(root, path, quote, name)
        if target is None:
            if quote == '"':
                yield f"{path}:{number}: includes \"{name}\", which is not in the tree"
        elif target.startswith(forbidden) or (allowed is not None and not any(target.startswith(a) for a in allowed)):
            yield f"{path}:{number}: {path.split('/')[0]} must not include {target}"


def dropped_faults(root, path, lines):
    """Calls of VIPL whose answer the compiler would let go."""
    declaring = os.path.join(root, DECLARES)
    if not path.startswith("mpi-adi/") or path == DECLARES or not os.path.isfile(declaring):
        return
    with open(declaring, encoding="utf-8") as file:
        declared = set(re.findall(r"\[\[nodiscard\]\] decltype\((\w+)\)", file.read()))
    for number, line in enumerate(lines, 1):
        for call in re.findall(r"\b(Vipx?[A-Z]\w*)\(", line):
            if call not in declared:
                yield f"{path}:{number}: {call} is not declared in {DECLARES}"


def faults(root):
    for path in sorted(tracked_files(root)):
        with open(os.path.join(root, path), "rb") as file:
            data = file.read()
        if b"\0" in data:
            continue
        lines = data.decode("utf-8", "replace").splitlines()
        if SOURCE.search(path) and not NO_COMMENTS.search(path):
            if not any("SPDX-License-Identifier: BSD-2-Clause" in line for line in lines[:3]):
                yield f"{path}:1: no SPDX line among the first three"
        for number, line in enumerate(lines, 1):
            if MACHINE.search(line):
                yield f"{path}:{number}: names a place on one machine"
        if CODE.search(path):
            yield from include_faults(root, path, lines)
            yield from dropped_faults(root, path, lines)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    count = len(tracked_files(root))
    found = list(faults(root))
    for fault in found:
        print(fault)
    print(f"{count} files, {len(found)} faults")
    sys.exit(1 if found or not count else 0)


if __name__ == "__main__":
    main()
