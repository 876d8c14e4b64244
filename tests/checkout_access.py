# SPDX-License-Identifier: BSD-2-Clause
"""Access of other users to a checkout below a folder that only its owner may enter, as /root or a folder of mktemp."""

import ctypes
import os
import stat
import subprocess

CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CLONE_NEWNS = 0x00020000


def closed_folder(path=CHECKOUT):
    """The topmost folder on the way to `path` that other users may not enter, or nothing."""
    on_the_way = [path]
    while os.path.dirname(on_the_way[-1]) != on_the_way[-1]:
        on_the_way.append(os.path.dirname(on_the_way[-1]))
    return next((folder for folder in reversed(on_the_way[1:]) if not os.stat(folder).st_mode & stat.S_IXOTH), None)


def give():
    """For root, and for the processes that it starts from here on: a mount namespace of their own, in which an empty folder that each user may
    enter stands in place of the closed folder, with the checkout at its path. Nothing of it is seen outside. Raises OSError where the system
    refuses it."""
    closed = closed_folder()
    if closed is None or os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare: " + os.strerror(ctypes.get_errno()))
    checkout = os.open(CHECKOUT, os.O_PATH)
    for words in (("--make-rprivate", "/"), ("-t", "tmpfs", "-o", "mode=755", "tmpfs", closed)):
        mount(*words)
    mask = os.umask(0o022)
    os.makedirs(CHECKOUT)
    os.umask(mask)
    # Without -c the command mounts what the path of this descriptor names, which is the new empty folder.
    mount("-c", "--bind", f"/proc/{os.getpid()}/fd/{checkout}", CHECKOUT)
    os.close(checkout)
    os.chdir(CHECKOUT)


def mount(*words):
    done = subprocess.run(["mount", *words], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"mount {' '.join(words)}: {done.stderr.strip()}")
