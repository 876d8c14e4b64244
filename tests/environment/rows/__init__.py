# SPDX-License-Identifier: BSD-2-Clause
"""All rows, by kind."""
from . import agents, folders, life, limits, memory, namespaces, seccomp

ALL = [*namespaces.ROWS, *seccomp.ROWS, *limits.ROWS, *life.ROWS, *agents.ROWS, *folders.ROWS, *memory.ROWS]
assert len({row.name for row in ALL}) == len(ALL), "two rows have one name"
