#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vipperf beside perftest in one run: perf.py BUILD [--within | --between] [TEST...] [SIZE...]. Prints one table; each
figure is the median of PERF_ROUNDS runs (3), taken in turns. Latency: half a round trip (read: the whole), in microseconds;
bandwidth in 10^6 bytes a second. The ratio is ours to theirs so that above 1 is worse. Within device rxe0 and from rxe1
to rxe0, or one of them; tests are send_lat, write_lat, write_bw, read_bw; without sizes every power of two from 2 bytes
to a MiB."""
import json
import os
import statistics
import subprocess
import sys
import time

ROUNDS = int(os.environ.get("PERF_ROUNDS", "3"))
LIMIT = 1.15
SIZES = [1 << k for k in range(1, 21)]
TESTS = ["send_lat", "write_lat", "write_bw", "read_bw"]
PERFTEST_PORT = 18515


def iterations(test, size):
    return max(100, min(1000, (16 << 20) // size)) if test.endswith("lat") else max(64, min(2000, (64 << 20) // size))


def wait_for_listener(port):
    """A client of perftest whose server does not listen yet gives up."""
    while True:
        with open("/proc/net/tcp", encoding="ascii") as f:
            if any(line.split()[1].endswith(":%04X" % port) and line.split()[3] == "0A" for line in f.readlines()[1:]):
                return
        time.sleep(0.01)


def perftest(test, size, far):
    def command(device):
        return ["ib_" + test, "-F", "-d", device, "-x", "1", "-s", str(size), "-n", str(iterations(test, size))]
    server = subprocess.Popen(command("rxe0"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_listener(PERFTEST_PORT)
    client = subprocess.run(command("rxe1" if far else "rxe0") + ["127.0.0.1"], capture_output=True, text=True,
                            timeout=120, check=False)
    server.wait(timeout=30)
    for line in client.stdout.splitlines():
        words = line.split()
        if len(words) >= 5 and words[0] == str(size):
            return float(words[4]) if test.endswith("lat") else float(words[3]) * 1.048576
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


def main():
    build, words = sys.argv[1], sys.argv[2:]
    places = [far for far, word in ((False, "--within"), (True, "--between"))
              if word in words or not {"--within", "--between"} & set(words)]
    tests = [test for test in TESTS if test in words] or TESTS
    sizes = [int(word) for word in words if word.isdigit()] or SIZES
    worst = 0.0
    over = 0
    print("%-8s %-9s %9s %12s %12s %7s" % ("where", "test", "bytes", "vipperf", "perftest", "ratio"))
    for far in places:
        for test in tests:
            for size in sizes:
                ours, theirs = [], []
                for _ in range(ROUNDS):
                    theirs.append(perftest(test, size, far))
                    ours.append(vipperf(build, test, size, far))
                a, b = statistics.median(ours), statistics.median(theirs)
                ratio = a / b if test.endswith("lat") else b / a
                worst = max(worst, ratio)
                over += ratio > LIMIT
                print("%-8s %-9s %9d %12.2f %12.2f %7.2f%s" % ("between" if far else "within", test, size, a, b, ratio,
                                                               "  *" if ratio > LIMIT else ""), flush=True)
    print("largest ratio %.2f, %d above %.2f" % (worst, over, LIMIT))


main()
