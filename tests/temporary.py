#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""New folders for tests, in the temporary folder where that serves. Users have it on a file system of which no program may be run
(noexec), below a path that is too long for the name of a socket, or where no other user may enter it.

    temporary.py programs|sockets   makes such a folder and prints its path"""
import os
import sys
import tempfile

from checkout_access import closed_folder

# Of the 107 bytes that a socket's name has at most; the rest is for what a test makes below.
LONGEST = 60


def runs_programs(folder):
    return not os.statvfs(folder).f_flag & os.ST_NOEXEC


def is_short(folder):
    return len(os.fsencode(folder)) <= LONGEST


def is_open(folder):
    """Tests of root have processes of other users."""
    return os.geteuid() != 0 or closed_folder(os.path.join(folder, "new")) is None


def place(serves):
    """The temporary folder, or else the first of these that serves and in which this user may make a file."""
    for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", os.getcwd()):
        if os.path.isdir(folder) and serves(folder) and is_open(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    return tempfile.gettempdir()  # the test says what is wrong with it


def for_programs():
    """Where to make a folder of programs and libraries: `dir` of the functions of tempfile."""
    return place(runs_programs)


def for_sockets():
    """Where to make a folder of sockets."""
    return place(is_short)


def main():
    where = {"programs": for_programs, "sockets": for_sockets}.get(sys.argv[1] if len(sys.argv) == 2 else None)
    if where is None:
        print(__doc__, file=sys.stderr)
        return 2
    print(tempfile.mkdtemp(dir=where()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
