# SPDX-License-Identifier: BSD-2-Clause
"""A peer of the default NIC that writes into the words which all peers of a context share, and leaves or goes on. Measured is another
peer of the same context: vipping, asleep between messages, before, during and after."""
import argparse
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import eventually  # noqa: E402

MESSAGES = 60
# The median time of a message, there and back, in ms: far above what a machine takes, far below the 40 ms that a word of the hub that is
# taken unchecked costs for good. A busy machine is measured first: it may take so many times what it took then.
MOST_AFTER, MOST_DURING, BUSY = 8.0, 20.0, 5


def summary(build, environment, interval):
    run = eventually.run([os.path.join(build, "bin/vipping"), "-q", "-j", "-c", str(MESSAGES), "-i", str(interval), "-W", "5000"], 60,
                         env=environment)
    if run.returncode != 0:
        sys.exit("the victim's messages failed: %s%s" % (run.stdout, run.stderr))
    return json.loads(run.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    build = parser.parse_args().build
    environment = dict(os.environ)
    writer = os.path.join(build, "tests/adversary/adversary_hub_writer")
    server = subprocess.Popen([os.path.join(build, "bin/vipping"), "--server"], env=environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    failures = []
    try:
        def median(what):
            value = summary(build, environment, 0.02)["round_trip_us"]["p50"] / 1000
            print("%-40s %.3f ms" % (what, value))
            return value

        before = median("before")

        def judge(what, most):
            value = median(what)
            if value > max(most, BUSY * before):
                failures.append("%s: %.3f ms a message, at most %.1f" % (what, value, max(most, BUSY * before)))

        for how in ("zero", "ones", "less"):
            eventually.run([writer, how, "0"], 30, env=environment, check=True)
            judge("after a peer wrote once (%s) and left" % how, MOST_AFTER)
        for how in ("zero", "random"):
            hostile = subprocess.Popen([writer, how, "6"], env=environment, stdout=subprocess.PIPE, text=True)
            if hostile.stdout.readline() != "writing\n":
                sys.exit("the hostile peer did not come to write")
            judge("while a peer writes (%s)" % how, MOST_DURING)
            if eventually.finished(hostile, 60) != 0:
                sys.exit("the hostile peer failed")
            judge("after it has left", MOST_AFTER)
    finally:
        server.terminate()
        server.wait()
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


main()
