#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Are the values and sizes of our mpi.h those of MPICH's on this kind of processor?    abi_test.py COMPILER OUR-MPI.H THEIRS

Both headers are compiled with the same table of all that ours defines as a number or a handle and the other one has; the tables
are read out of the objects. Programs that are compiled with one of them run with the library of the other.
"""
import os
import re
import struct
import subprocess
import sys
import tempfile

SIZES = ["sizeof(MPI_%s)" % name for name in
         ("Aint Count Offset Fint Status F08_status Comm Datatype Errhandler File Group Info Message Op Request Session Win").split()]
SIZES += ["offsetof(MPI_Status, %s)" % field for field in ("MPI_SOURCE", "MPI_TAG", "MPI_ERROR")]
# What programs ask a library for, and are not compiled for.
OF_THE_LIBRARY = {"MPI_SUBVERSION"}


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("%s\nFAILED: %s" % (done.stderr[-2000:], " ".join(command)))
    return done.stdout


def numbers_of(compiler, header):
    """Names whose definition has a number and else nothing but types and parentheses."""
    names = []
    for line in run(compiler, "-dM", "-E", header).splitlines():
        found = re.fullmatch(r"#define (MPIX?_[A-Z0-9_]+) +([^\"]+)", line)
        if found and re.search(r"(?<![\w])-?(0x)?[0-9]", re.sub(r"\bMPIX?_\w+", "", found[2])):
            names.append(found[1])
    return sorted(names)


def values(compiler, header, expressions, folder):
    source, made, table = (os.path.join(folder, name) for name in ("table.c", "table.o", "table"))
    with open(source, "w", encoding="utf-8") as file:
        file.write('#include "%s"\n#include <stddef.h>\n#include <stdint.h>\n' % header)
        file.write('__attribute__((used, section("numbers"))) const long long table[] = {\n')
        file.write("".join("(long long)(intptr_t)(%s),\n" % one for one in expressions) + "};\n")
    run(compiler, "-w", "-I" + os.path.dirname(header), "-c", "-o", made, source)
    run("objcopy", "-O", "binary", "-j", "numbers", made, table)
    with open(table, "rb") as file:
        return struct.unpack("=%dq" % len(expressions), file.read())


def main():
    compiler, ours, theirs = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3]
    if not os.path.exists(theirs):
        print("SKIPPED: no %s (package libmpich-dev)" % theirs)
        return 77
    with open(theirs, encoding="utf-8") as file:
        known = set(re.findall(r"\w+", file.read())) - OF_THE_LIBRARY
    names = [name for name in numbers_of(compiler, ours) if name in known]
    expressions = names + SIZES
    with tempfile.TemporaryDirectory() as folder:
        mine = values(compiler, ours, expressions, folder)
        other = values(compiler, theirs, expressions, folder)
    bad = ["%s is %#x, and %#x with MPICH" % (what, a, b) for what, a, b in zip(expressions, mine, other) if a != b]
    print("\n".join(bad + ["%d values and %d sizes, %d differ" % (len(names), len(SIZES), len(bad))]))
    return 1 if bad or len(names) < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
