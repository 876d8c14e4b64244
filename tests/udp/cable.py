#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Switches an interface of its own network namespace off and on, without a process to start in between and, where the system grants
it, ahead of all ordinary processes. Its commands are lines of its standard input; it answers each with a line.

    cable.py INTERFACE

    down     switches it off
    up       switches it on
    SECONDS  off, and on after so many seconds; the answer is for how long the interface was off at most
"""
import fcntl
import os
import socket
import struct
import sys
import time

GET_FLAGS, SET_FLAGS, IS_UP = 0x8913, 0x8914, 1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP
REQUEST = struct.Struct("16sH22x")  # struct ifreq


def switch(interface, on):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = REQUEST.pack(interface.encode(), 0)
        _, flags = REQUEST.unpack(fcntl.ioctl(any_socket, GET_FLAGS, request))
        flags = flags | IS_UP if on else flags & ~IS_UP
        fcntl.ioctl(any_socket, SET_FLAGS, REQUEST.pack(interface.encode(), flags))


def cut(interface, seconds):
    began = time.monotonic()
    switch(interface, False)
    time.sleep(seconds)  # sleeps: the cut
    switch(interface, True)
    return time.monotonic() - began


def main():
    interface = sys.argv[1]
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        pass  # without that right, the answers show cuts that were too long
    for line in sys.stdin:
        word = line.strip()
        if word in ("down", "up"):
            switch(interface, word == "up")
            print(word, flush=True)
        else:
            print("%.3f" % cut(interface, float(word)), flush=True)


if __name__ == "__main__":
    main()
