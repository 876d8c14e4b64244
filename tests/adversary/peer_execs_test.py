#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A hostile peer grants memory and becomes another program, over and over: nothing is written into the memory that the new
program has at the same place, and the victim is told that its connection is lost."""
import sys

import pairs

if __name__ == "__main__":
    sys.exit(pairs.run("adversary_execs", ("victim", "hostile"), "execs", rounds=3))
