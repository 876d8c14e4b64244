#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A program unmaps memory that it has registered and does not say so, and its peer writes to all of it: nothing that the
library has mapped since then lies there, so the program works on."""
import sys

import pairs

if __name__ == "__main__":
    sys.exit(pairs.run("adversary_unmaps", ("owner", "writer"), "unmaps", rounds=3))
