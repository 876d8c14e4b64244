#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A program unmaps memory that it has registered and does not say so, and its peer writes to all of it: nothing that the
library has mapped since then lies there, so the program works on."""
import argparse
import os
import subprocess
import sys

ROUNDS = 3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    build = parser.parse_args().build
    program = os.path.join(build, "tests/adversary/adversary_unmaps")
    environment = dict(os.environ, VIADUCT_AGENT=f"@viaduct-test-unmaps-{os.getpid()}", VIADUCT_LOG="warn")
    good = True
    for number in range(ROUNDS):
        pair = [subprocess.Popen([program, role, f"u{number}"], env=environment, stdout=subprocess.PIPE, text=True)
                for role in ("owner", "writer")]
        try:
            said = [process.communicate(timeout=60)[0].strip() for process in pair]
        except subprocess.TimeoutExpired:
            said = ["timeout"]
            for process in pair:
                process.kill()
        codes = [process.wait() for process in pair]
        print(said, codes, flush=True)
        good = good and codes == [0, 0]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
