#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""old_kernel_test.py --build DIR: a kernel before 6.5, which gives no descriptor of the process at the other end of a socket
(SO_PEERPIDFD), and programs in PID namespaces of their own, which have no number for the agent either. They are served all the
same, and the end of one is noticed by the other. The old kernel is a filter of system calls around vipkad. Needs root."""
import argparse
import ctypes
import os
import platform
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import Late, RunningTime, communicated, eventually  # noqa: E402
from unix_sockets import listens  # noqa: E402

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
GETSOCKOPT, SO_PEERPIDFD, ENOPROTOOPT = 55, 77, 92
CLONE_NEWPID = 0x20000000


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def old_kernel():
    """From here on SO_PEERPIDFD is unknown to this process. The filter: number 55 with third argument 77 fails."""
    rows = [(0x20, 0, 0, 0), (0x15, 0, 3, GETSOCKOPT), (0x20, 0, 0, 32), (0x15, 0, 1, SO_PEERPIDFD),
            (0x06, 0, 0, 0x00050000 | ENOPROTOOPT), (0x06, 0, 0, 0x7FFF0000)]
    code = b"".join(struct.pack("HBBI", *row) for row in rows)
    room = ctypes.create_string_buffer(code, len(code))
    program = Program(len(rows), ctypes.cast(room, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or \
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def new_pid_namespace():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWPID) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    build = parser.parse_args().build
    if os.geteuid() != 0 or platform.machine() != "x86_64":
        print("SKIPPED: needs root and the system calls of x86-64")
        return 77
    try:
        subprocess.run(["true"], preexec_fn=lambda: (new_pid_namespace(), old_kernel()), check=True)
    except (subprocess.SubprocessError, OSError) as e:
        print(f"SKIPPED: no PID namespace or no seccomp here: {e}")
        return 77
    place = f"@viaduct-old-kernel-{os.getpid()}"
    environment = dict(os.environ, VIADUCT_AGENT=place, LD_LIBRARY_PATH=os.path.join(build, "lib"),
                       VIADUCT_PROVIDER_PATH=os.path.join(build, "lib", "viaduct"))
    vipping = os.path.join(build, "bin", "vipping")

    # The program is the first process of a namespace: sh stays outside and starts it. Three namespaces beside each other:
    # none has a number for the users of another.
    def apart(*words, before=new_pid_namespace):
        return subprocess.Popen(["sh", "-c", '"$0" "$@" & wait $!', *words], env=environment, text=True, preexec_fn=before,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    failures = 0
    agent = apart(os.path.join(build, "sbin", "vipkad"), "--socket", place, "--linger-ms", "-1",
                  before=lambda: (new_pid_namespace(), old_kernel()))
    eventually("the agent listens", lambda: listens(place), [agent.pid])
    server = apart(vipping, "--server")
    client = apart(vipping, "-q", "-c", "5", "-i", "0.05", "-w", "8000")
    try:
        said = communicated(client, 30, also=[agent.pid, server.pid])[0]
    except Late:
        os.killpg(client.pid, 9)
        said = client.communicate()[0] + "(still trying)"
    if client.returncode != 0:
        print(f"FAILED two programs do not meet: {said}")
        failures += 1
    client = apart(vipping, "-c", "1000", "-i", "0.05", "-w", "8000")
    if not any("time=" in line for line in client.stdout):
        print("FAILED a second client gets no answer")
        failures += 1
    os.killpg(server.pid, 9)
    time_used = RunningTime()
    try:
        communicated(client, 30, also=[agent.pid])
        print(f"the end of the server is noticed within {time_used.wall():.1f} s")
    except Late:
        print("FAILED the end of the server is not noticed")
        os.killpg(client.pid, 9)
        failures += 1
    os.killpg(agent.pid, 9)
    agent.wait()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
