#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vipperf beside perftest in one run: perf.py BUILD [--within | --between] [SIZE...]. Prints one table; each figure is
the median of three, taken in turns. Latency: half a round trip (read: the whole), in microseconds; bandwidth in 10^6
bytes a second. The ratio is ours to theirs so that above 1 is worse. Within device rxe0 and from rxe1 to rxe0, or one
of them."""
import json
import os
import statistics
import subprocess
import sys
import time

ROUNDS = 3
LIMIT = 1.15
SIZES = [2, 64, 512, 4096, 16384, 65536, 1 << 20]
TESTS = [("send_lat", "ib_send_lat"), ("write_lat", "ib_write_lat"), ("write_bw", "ib_write_bw"), ("read_bw", "ib_read_bw")]


def iterations(test, size):
    return max(100, min(1000, (16 << 20) // size)) if test.endswith("lat") else max(64, min(2000, (64 << 20) // size))


def perftest(program, test, size, far):
    def command(device):
        return [program, "-F", "-d", device, "-x", "1", "-s", str(size), "-n", str(iterations(test, size))]
    server = subprocess.Popen(command("rxe0"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.7)
    client = subprocess.run(command("rxe1" if far else "rxe0") + ["127.0.0.1"], capture_output=True, text=True,
                            timeout=120, check=False)
    server.wait(timeout=30)
    for line in client.stdout.splitlines():
        words = line.split()
        if len(words) >= 5 and words[0] == str(size):
            return float(words[4]) if test.endswith("lat") else float(words[3]) * 1.048576
    raise RuntimeError("%s printed no figure:\n%s%s" % (program, client.stdout, client.stderr))


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
    build = sys.argv[1]
    words = [word for word in sys.argv[2:] if word.startswith("--")]
    sizes = [int(word) for word in sys.argv[2:] if word not in words] or SIZES
    places = [far for far, word in ((False, "--within"), (True, "--between")) if not words or word in words]
    worst = 0.0
    over = 0
    print("%-8s %-9s %9s %12s %12s %7s" % ("where", "test", "bytes", "vipperf", "perftest", "ratio"))
    for far in places:
        for test, program in TESTS:
            for size in sizes:
                ours, theirs = [], []
                for _ in range(ROUNDS):
                    theirs.append(perftest(program, test, size, far))
                    ours.append(vipperf(build, test, size, far))
                a, b = statistics.median(ours), statistics.median(theirs)
                ratio = a / b if test.endswith("lat") else b / a
                worst = max(worst, ratio)
                over += ratio > LIMIT
                print("%-8s %-9s %9d %12.2f %12.2f %7.2f%s" % ("between" if far else "within", test, size, a, b, ratio,
                                                               "  *" if ratio > LIMIT else ""), flush=True)
    print("largest ratio %.2f, %d above %.2f" % (worst, over, LIMIT))


main()
