#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A FIFO, a file without end or a folder in place of the configuration, the hosts file, the tuning file and the log: programs and tools go
on without it, take no memory for it, and name it.

    strange_files.py --program opens --vipinfo vipinfo --vipping vipping
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402

LIMIT = 10
MOST_MEMORY = 4 << 30
faults = []


def expect(name, condition, seen):
    print(("ok      " if condition else "FAILED  ") + name, flush=True)
    if not condition:
        print(seen)
        faults.append(name)


def run(folder, command, **variables):
    """(exit status, output, errors); None for the status of one that did not end."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VIADUCT_") or name == "VIADUCT_TIME_FACTOR"}
    environment = {**kept, "VIADUCT_AGENT": "@viaduct-test-%s" % os.path.basename(folder), "HOME": folder, **variables}
    try:
        done = eventually.run(["prlimit", "--as=%d" % MOST_MEMORY, *command], LIMIT, stdin=subprocess.DEVNULL, env=environment)
    except eventually.Late as late:
        return None, late.out, late.errors + str(late)
    return done.returncode, done.stdout, done.stderr


def read_files(options, folder, strange):
    opens, doctor = [options.program, "paramnet0"], [options.vipinfo, "--doctor", "--json"]
    for kind, path in strange.items():
        seen = run(folder, opens, VIADUCT_CONFIG=path)
        expect("a program whose configuration is %s" % kind, seen[:2] == (0, "VipOpenNic: VIP_SUCCESS\n"), seen)
        seen = run(folder, doctor, VIADUCT_CONFIG=path)
        told = [f["finding"] for f in json.loads(seen[1] or '{"findings": []}')["findings"] if f["subject"] == "configuration"]
        expect("the doctor names a configuration that is %s" % kind, any("%s: no regular file" % path in text for text in told), seen)
        seen = run(folder, opens, VIADUCT_TUNING=path)
        expect("a program whose tuning file is %s" % kind, seen[:2] == (0, "VipOpenNic: VIP_SUCCESS\n"), seen)
        seen = run(folder, [options.vipping, "-c", "1", "-w", "100", "no-such-host.invalid"], VIADUCT_HOSTS=path, VIADUCT_LOG="warn")
        expect("vipping whose hosts file is %s" % kind, seen[0] not in (None, 0) and "%s cannot be read: no regular file" % path in seen[2], seen)


def log_files(options, folder, fifo):
    # The name of no NIC: a failure, which level warn has a line for.
    command = [options.program, "udp:none"]
    seen = run(folder, command, VIADUCT_LOG="warn", VIADUCT_LOG_FILE=fifo)
    expect("a log into a FIFO without a reader goes to standard error, which says so",
           seen[0] == 1 and "VIADUCT_LOG_FILE=%s cannot be opened" % fifo in seen[2] and "VipOpenNic" in seen[2], seen)
    reader = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    try:
        while os.write(reader, bytes(4096)):
            pass
    except BlockingIOError:
        pass
    seen = run(folder, command, VIADUCT_LOG="warn", VIADUCT_LOG_FILE=fifo)
    os.close(reader)
    expect("a log into a FIFO that is full loses its lines", (seen[0], seen[2]) == (1, ""), seen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--program", "--vipinfo", "--vipping"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="strange-") as folder:
        fifo = os.path.join(folder, "fifo")
        os.mkfifo(fifo)
        read_files(options, folder, {"a FIFO": fifo, "a file without end": "/dev/zero", "a folder": folder})
        log_files(options, folder, fifo)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
