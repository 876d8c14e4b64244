#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes and the agent in PID namespaces of their own, as the containers of one pod: no number means anything
to another process. Messages, RDMA and news of deaths work all the same."""
import argparse
import os
import select
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "environment"))
from agents import wait_bound  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import finished, holds  # noqa: E402
from report.rows import chosen, report  # noqa: E402

SKIPPED = 77
SOON = 5  # seconds, until the death of a process is noticed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    build = parser.parse_args().build
    apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc"]
    if subprocess.run(apart + ["true"], capture_output=True).returncode != 0:
        print("SKIPPED: no PID namespaces here (not root, or forbidden)")
        return SKIPPED
    program = os.path.join(build, "tests/adversary/adversary_namespaces")
    environment = dict(os.environ, VIADUCT_AGENT=f"@viaduct-test-pids-{os.getpid()}", VIADUCT_LOG="warn")
    pairs = {"both in the same one, the agent in another": ([], []),
             "one in the first, one in another": ([], apart),
             "each in its own": (apart, apart)}
    names = chosen(pairs)
    running = []
    failures = []
    failed = []

    def start(where, *arguments):
        process = subprocess.Popen(where + list(arguments), env=environment, stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process

    def check(what, condition, seen=""):
        print(("good: " if condition else "BAD: ") + what, seen, flush=True)
        if not condition:
            failures.append(what)

    agent = start(apart, os.path.join(build, "sbin/vipkad"), "--socket", environment["VIADUCT_AGENT"], "--linger-ms", "60000")
    try:
        check("the agent is there", wait_bound(environment["VIADUCT_AGENT"], 30, [agent.pid]))
        common = len(failures)
        for name in names:
            before = len(failures)
            one, other = pairs[name]
            discriminator = "d" + str(len(running))
            served = start(one, program, "serve", discriminator)
            caller = start(other, program, "watch", discriminator)
            said = caller.stdout.readline().strip()
            check(f"{name}: messages and RDMA at the caller", said == "good", said)
            said = served.stdout.readline().strip() if said == "good" else "not asked"
            check(f"{name}: and at the other end", said == "good", said)
            served.kill()
            soon = holds(lambda: select.select([caller.stdout], [], [], 0)[0], [caller.pid, agent.pid], SOON)
            said = caller.stdout.readline().strip()
            check(f"{name}: its death is noticed", said == "lost", said)
            check(f"{name}: within {SOON} s", soon)
            finished(caller, 20)
            if len(failures) > before:
                failed.append(name)
    finally:
        for process in running:
            process.kill()
            process.wait()
    if not common:
        report(failed)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
