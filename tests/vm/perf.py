#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vipperf beside perftest in one run: perf.py BUILD [--within | --between] [TEST...] [SIZE...]. Prints one table.
Latency: half a round trip (read: the whole), in microseconds; bandwidth in 10^6 bytes a second. The ratios are ours to
theirs so that above 1 is worse. Within device rxe0 and from rxe1 to rxe0, or one of them; tests are send_lat, write_lat,
write_bw, read_bw; without sizes every power of two from 2 bytes to a MiB.

The two programs run in turns, PERF_ROUNDS times each (5), with the same number of messages; each run is a pair of processes
of its own. The verdict is that of the medians. Beside it stand the ratio of the best runs and how far the worst run of each
is from its best: on a machine whose runs fall into groups, these tell so. Alike in both: packets of the device's MTU, one
message under way at a time for latency and 128 for bandwidth, up to 128 bytes inline, a completion for each message,
receives that all point to one buffer, polling. Not alike: perftest posts its receive between a message and the answer,
vipperf while the answer is on its way; perftest has a completion queue for each direction, the VIs of a NIC share one."""
import json
import os
import statistics
import subprocess
import sys
import time

ROUNDS = int(os.environ.get("PERF_ROUNDS", "5"))
LIMIT = 1.15
SIZES = [1 << k for k in range(1, 21)]
TESTS = ["send_lat", "write_lat", "write_bw", "read_bw"]
PERFTEST_PORT = 18515
INLINE = 128  # verbs.inline


def iterations(test, size):
    return max(100, min(3000, (16 << 20) // size)) if test.endswith("lat") else max(64, min(8000, (64 << 20) // size))


def wait_for_listener(port):
    """A client of perftest whose server does not listen yet gives up."""
    while True:
        with open("/proc/net/tcp", encoding="ascii") as f:
            if any(line.split()[1].endswith(":%04X" % port) and line.split()[3] == "0A" for line in f.readlines()[1:]):
                return
        time.sleep(0.01)  # sleeps: between two looks


def perftest(test, size, far):
    # As ours do it: short messages inline, and a completion for each (by itself it asks for one in a hundred).
    alike = (["-I", str(INLINE)] if test != "read_bw" else []) + (["-Q", "1"] if test.endswith("bw") else [])

    def command(device):
        return ["ib_" + test, "-F", "-d", device, "-x", "1", "-s", str(size), "-n", str(iterations(test, size))] + alike
    server = subprocess.Popen(command("rxe0"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_listener(PERFTEST_PORT)
    client = subprocess.run(command("rxe1" if far else "rxe0") + ["127.0.0.1"], capture_output=True, text=True,
                            timeout=120, check=False)
    server.wait(timeout=30)
    for line in client.stdout.splitlines():
        words = line.split()
        if len(words) >= 5 and words[0] == str(size):
            # Bandwidth from the message rate (10^6 a second): the one in MB has two digits behind the point.
            return float(words[4]) if test.endswith("lat") else float(words[4]) * size
    raise RuntimeError("ib_%s printed no figure:\n%s%s" % (test, client.stdout, client.stderr))


def vipperf(build, test, size, far):
    program = os.path.join(build, "bin", "vipperf")
    what = ["-t", test, "-b", str(size), "-n", str(iterations(test, size)), "-j"]
    server = subprocess.Popen([program, "-s", "-1", "-d", "verbs0"], stdout=subprocess.DEVNULL)
    out = subprocess.run([program, "-d", "verbs1" if far else "verbs0", "-w", "10000", "rxe0"] + what, capture_output=True,
                         text=True, timeout=120, check=False)
    server.wait(timeout=30)
    if out.returncode != 0:
        raise RuntimeError("vipperf %s: status %d\n%s%s" % (" ".join(what), out.returncode, out.stdout, out.stderr))
    row = json.loads(out.stdout)["tests"][0]["rows"][0]
    return row["t_typical_us"] if test.endswith("lat") else row["bw_average_mb_s"]


def better_first(test, figures):
    return sorted(figures, reverse=not test.endswith("lat"))


def compare(build, where, test, size, far):
    """One row: prints it and returns the ratio of the medians."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(perftest(test, size, far))
        ours.append(vipperf(build, test, size, far))

    def ratio(a, b):
        return a / b if test.endswith("lat") else b / a
    ours, theirs = better_first(test, ours), better_first(test, theirs)
    a, b = statistics.median(ours), statistics.median(theirs)
    verdict = ratio(a, b)
    print("%-8s %-9s %9d %11.2f %11.2f %7.2f %7.2f %7.2f %7.2f%s" % (
        where, test, size, a, b, verdict, ratio(ours[0], theirs[0]), ratio(ours[-1], ours[0]), ratio(theirs[-1], theirs[0]),
        "  *" if verdict > LIMIT else ""), flush=True)
    return verdict


def main():
    build, words = sys.argv[1], sys.argv[2:]
    places = [far for far, word in ((False, "--within"), (True, "--between"))
              if word in words or not {"--within", "--between"} & set(words)]
    tests = [test for test in TESTS if test in words] or TESTS
    sizes = [int(word) for word in words if word.isdigit()] or SIZES
    print("%-8s %-9s %9s %11s %11s %7s %7s %7s %7s" % (
        "where", "test", "bytes", "vipperf", "perftest", "ratio", "of best", "spread", "theirs"))
    ratios = [compare(build, "between" if far else "within", test, size, far)
              for far in places for test in tests for size in sizes]
    print("largest ratio %.2f, %d of %d above %.2f" % (max(ratios), sum(r > LIMIT for r in ratios), len(ratios), LIMIT))


main()
