# SPDX-License-Identifier: BSD-2-Clause
"""Pairs of processes of one adversary program, one after another, each pair with a deadline."""
import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from eventually import Late, communicated  # noqa: E402

SECONDS = 60  # for a pair


def run(program, roles, agent, rounds):
    """0 when both processes of each pair end with 0; roles are the program's first argument, a name of the round its second."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    path = os.path.join(parser.parse_args().build, "tests/adversary", program)
    environment = dict(os.environ, VIADUCT_AGENT=f"@viaduct-test-{agent}-{os.getpid()}", VIADUCT_LOG="warn")
    good = True
    for number in range(rounds):
        pair = [subprocess.Popen([path, role, f"r{number}"], env=environment, stdout=subprocess.PIPE, text=True) for role in roles]
        try:
            said = [communicated(process, SECONDS)[0].strip() for process in pair]
        except Late as late:
            said = [str(late)]
            for process in pair:
                process.kill()
        codes = [process.wait() for process in pair]
        print(said, codes, flush=True)
        good = good and codes == [0, 0]
    return 0 if good else 1
