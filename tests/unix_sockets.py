# SPDX-License-Identifier: BSD-2-Clause
"""Sockets with abstract names, as /proc/net/unix lists them."""

LISTENING = "00010000"  # the flags of a socket on which listen() has been called; until then a connect() is refused


def listens(name, process="self"):
    """Whether a socket with that name, written with @ in front, listens in the network namespace of the process."""
    with open("/proc/%s/net/unix" % process, encoding="utf-8", errors="replace") as sockets:
        lines = [line.split() for line in sockets]
    return any(words[3] == LISTENING and words[-1] == name for words in lines)
