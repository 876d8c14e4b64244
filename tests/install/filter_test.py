#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vipkad under the system call filter and the address families of its unit: it serves two programs, and lists a NIC of udp.

    filter_test.py --build BUILD

The unit's groups of calls are resolved by systemd-analyze; their numbers are the compiler's.
"""
import argparse
import ctypes
import errno
import json
import os
import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import temporary  # noqa: E402
from eventually import holds, run  # noqa: E402

SKIPPED = 77
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
REFUSE, ALLOW = 0x00050000 | errno.EPERM, 0x7FFF0000  # as SystemCallErrorNumber=EPERM has it
NO_FAMILY = 0x00050000 | errno.EAFNOSUPPORT  # as systemd refuses a family
FIRST_ARGUMENT = 16  # in struct seccomp_data, the low half


def skip(why):
    print("SKIPPED: " + why)
    sys.exit(SKIPPED)


def group(name):
    """Names of the calls in one of systemd's groups, those of the groups in it too."""
    text = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True).stdout
    names = set()
    for line in text.splitlines()[1:]:
        word = line.strip()
        if word.startswith("@"):
            names |= group(word)
        elif word and not word.startswith("#"):
            names.add(word)
    return names


def allowed_by(unit):
    """As systemd reads SystemCallFilter=: the first line is a list of what may be, one with ~ takes from it."""
    calls = group("@default")
    with open(unit, encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("SystemCallFilter="):
                continue
            words = line.split("=", 1)[1].strip()
            takes = words.startswith("~")
            named = set()
            for word in words.lstrip("~").split():
                named |= group(word) if word.startswith("@") else {word}
            calls = calls - named if takes else calls | named
    return calls


def families_of(unit):
    """Numbers of the families that RestrictAddressFamilies= leaves."""
    with open(unit, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("RestrictAddressFamilies="):
                return [int(getattr(socket, name)) for name in line.split("=", 1)[1].split()]
    raise ValueError(unit + " restricts no address families")


def numbers():
    """Of this machine's calls, by the C compiler's header."""
    text = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
                          capture_output=True, text=True, check=True).stdout
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)$", text, re.MULTILINE)}


def program(calls, call_socket, families):
    """A filter that allows these numbers and refuses all others; the call that makes a socket, with these families."""
    def step(code, true, false, value):
        return struct.pack("=HBBI", code, true, false, value)
    steps = [step(0x20, 0, 0, 0)]  # the number of the call
    steps.append(step(0x15, 0, 2 * len(families) + 2, call_socket))
    steps.append(step(0x20, 0, 0, FIRST_ARGUMENT))
    for family in families:
        steps += [step(0x15, 0, 1, family), step(0x06, 0, 0, ALLOW)]
    steps.append(step(0x06, 0, 0, NO_FAMILY))
    for number in sorted(calls):
        steps += [step(0x15, 0, 1, number), step(0x06, 0, 0, ALLOW)]
    return b"".join([*steps, step(0x06, 0, 0, REFUSE)])


def confine(code):
    """This process, from now on; what it becomes by exec as well."""
    libc = ctypes.CDLL(None, use_errno=True)
    text = ctypes.create_string_buffer(code, len(code))
    filter_program = struct.pack("=H6xQ", len(code) // 8, ctypes.addressof(text))
    argument = ctypes.create_string_buffer(filter_program, len(filter_program))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, argument, 0, 0) != 0:
        os._exit(SKIPPED)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    options = parser.parse_args()
    if platform.machine() != "x86_64":
        skip("the filter is written for x86_64")
    if shutil.which("systemd-analyze") is None:
        skip("no systemd-analyze (package systemd), which has the groups of system calls")
    unit = os.path.join(options.build, "packaging/system/vipkad.service")
    names = allowed_by(unit)
    known = numbers()
    if len(names) < 100:
        print("FAILED: the unit allows %d calls only" % len(names))
        return 1
    code = program({known[name] for name in names if name in known}, known["socket"], families_of(unit))
    folder = tempfile.mkdtemp(prefix="viaduct-filter-", dir=temporary.for_sockets())
    path = os.path.join(folder, "agent.sock")
    environment = {**os.environ, "VIADUCT_AGENT": path, "VIADUCT_UDP_INTERFACES": "127.0.0.1"}
    agent = os.fork()
    if agent == 0:
        confine(code)
        os.execve(os.path.join(options.build, "sbin/vipkad"), ["vipkad", "--socket", path, "--linger-ms", "-1"], environment)
    server = None
    try:
        ended = False

        def listens_or_has_ended():
            nonlocal ended
            ended = os.waitpid(agent, os.WNOHANG) != (0, 0)
            return ended or os.path.exists(path)
        listens = holds(listens_or_has_ended, [agent])
        if ended:
            agent = None
        if ended or not listens:
            print("FAILED: vipkad %s" % ("does not live long enough to listen" if ended else "does not listen"))
            return 1
        vipping = os.path.join(options.build, "bin/vipping")
        server = subprocess.Popen([vipping, "--server"], env=environment, stdout=subprocess.DEVNULL)
        done = run([vipping, "-q", "-c", "20", "-i", "0.01", "-w", "20000"], 60, env=environment)
        info = run([os.path.join(options.build, "bin/vipinfo"), "--json"], 60, env=environment)
        if os.waitpid(agent, os.WNOHANG) != (0, 0):
            print("FAILED: vipkad has ended")
            agent = None
            return 1
        if done.returncode != 0 or info.returncode != 0:
            print("FAILED: vipping ended with %d, vipinfo with %d\n%s%s" % (done.returncode, info.returncode, done.stderr, info.stderr))
            return 1
        if not any(nic["name"] == "udp0" for nic in json.loads(info.stdout)["nics"]):
            print("FAILED: vipkad has no udp0\n" + info.stdout)
            return 1
        os.kill(agent, signal.SIGTERM)
        _, status = os.waitpid(agent, 0)
        agent = None
        if status != 0:
            print("FAILED: vipkad ended with status %d" % status)
            return 1
        print("%d calls are allowed, and enough" % len(names))
        return 0
    finally:
        if server is not None:
            server.kill()
            server.wait()
        if agent is not None:
            os.kill(agent, signal.SIGKILL)
            os.waitpid(agent, 0)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
