#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What our shared libraries look for by name outside of themselves, and a program may own (spec/compat L1).

    imports.py --names core/libc/names.def --rules docs/spec/compat.md FOLDER

FOLDER has libvipl.so.1, viaduct/*.so and cmpi/lib/libmpich.so.12. An imported name of the C library is reserved by
ISO C, or one that is not bound, which L1 says. Everything else has to be bound inside.
"""
import argparse
import glob
import os
import re
import subprocess
import sys

# Of C99, by header. Names with an underscore in front are the implementation's, and so are str..., mem... and so on.
RESERVED = set("""
    asctime clock ctime difftime gmtime localtime mktime time
    longjmp raise signal
    clearerr fclose feof ferror fflush fgetc fgetpos fgets fopen fprintf fputc fputs fread freopen fscanf fseek fsetpos
    ftell fwrite getc getchar gets perror printf putc putchar puts remove rename rewind scanf setbuf setvbuf snprintf
    sprintf sscanf stderr stdin stdout tmpfile tmpnam ungetc vfprintf vprintf vsnprintf vsprintf
    abort abs atexit atof atoi atol atoll bsearch calloc div exit free getenv labs ldiv llabs lldiv malloc mblen
    mbstowcs mbtowc qsort rand realloc srand system
    localeconv setlocale
    acos asin atan atan2 ceil cos cosh exp fabs floor fmod frexp ldexp log log10 modf pow sin sinh sqrt tan tanh
""".split())
RESERVED_PATTERN = re.compile(r"_|(str|mem|wcs|is|to)[a-z]")
# Programs are linked with this library and do not own its names (H17).
THREADS = re.compile(r"pthread_")
# How the others are bound; what belongs to an allocator that a program may replace as a whole.
NOT_BOUND = {"dladdr", "dlclose", "dlerror", "dlopen", "dlsym", "aligned_alloc"}

# What the C++ run-time library does by names of the C library.
OF_FILES_IN_CXX = re.compile(r"_ZNK?St10filesystem(?!(7__cxx11)?4path)|_ZNK?St13basic_filebuf")
OTHERS_IN_CXX = re.compile(r"_ZNSt6chrono.*3nowE|_ZNSt11this_thread|_ZNSt6thread20hardware_concurrency|"
                           r"_ZNSt13random_device")
MAY_USE_FILES_IN_CXX = ("acenic.so", "libmpich.so.12")


def imported(library):
    command = ["nm", "-D", "--undefined-only", library]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    # The linker puts a variable's other names beside the one that is used, as weak objects.
    return [line.split()[-1] for line in said.splitlines() if line.split()[-2] != "v"]


def rule_of(path, key):
    with open(path, encoding="utf-8") as f:
        return next(line for line in f if line.startswith("| %s |" % key))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", required=True)
    parser.add_argument("--rules", required=True)
    parser.add_argument("folder")
    options = parser.parse_args()
    with open(options.names, encoding="utf-8") as f:
        of_files = set(re.findall(r"^NAME_OF_FILES\((\w+)\)$", f.read(), re.MULTILINE))
    rule = rule_of(options.rules, "L1")
    untold = [name for name in sorted(NOT_BOUND) if "`%s`" % name not in rule]
    wrong = ["%s is not bound, and L1 does not say so" % name for name in untold]
    vipl = os.path.join(options.folder, "libvipl.so.1")
    mpi = os.path.join(options.folder, "cmpi", "lib", "libmpich.so.12")
    libraries = [vipl] + sorted(glob.glob(os.path.join(options.folder, "viaduct", "**", "*.so"), recursive=True))
    libraries += [mpi] if os.path.exists(mpi) else []
    for library in libraries:
        allowed = NOT_BOUND | (of_files if library == mpi else set())
        c_names = 0
        for symbol in imported(library):
            name, _, version = symbol.partition("@")
            if OTHERS_IN_CXX.match(name) or (OF_FILES_IN_CXX.match(name) and
                                            os.path.basename(library) not in MAY_USE_FILES_IN_CXX):
                wrong.append("%s imports %s, which calls functions that a program may own" % (library, name))
            if not version.lstrip("@").startswith("GLIBC_"):
                continue
            c_names += 1
            if not (name in RESERVED or name in allowed or RESERVED_PATTERN.match(name) or THREADS.match(name)):
                wrong.append("%s calls %s, which a program may own: core/libc/names.def" % (library, name))
        if c_names == 0:
            wrong.append("%s: nm shows no name of the C library" % library)
        print("%s: %d names of the C library" % (library, c_names))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
