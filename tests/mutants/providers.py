# SPDX-License-Identifier: BSD-2-Clause
"""Mutants below the device: NIC providers, the agent, libvipl."""

from mutant import Mutant

MUTANTS = [
]
