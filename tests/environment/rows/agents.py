# SPDX-License-Identifier: BSD-2-Clause
"""Agents that are wrong, dead, silent, foreign or of another version: each open ends in time, and the log says why."""
from row import WORKS, Row, works_or

told = works_or(reason=r"(?i)agent|vipkad")
ROWS = [Row("agents", mood, action, told, agent=mood, seconds=40)
        for mood in ("deaf", "full", "silent", "foreign", "closes", "rubbish", "newer", "older", "late", "welcomes")
        for action in ("open", "pingpong")]
ROWS += [Row("agents", f"doctor-{mood}", "tool:vipinfo --doctor", WORKS, agent=mood, says=says, status=status, seconds=40)
         for mood, says, status in (("foreign", r"(?i)another user|4242", 0), ("silent", r"(?i)agent", 1), ("newer", r"(?i)version", 1),
                            ("closes", r"(?i)agent", 1), ("full", r"(?i)agent", 1))]
ROWS += [Row("agents", f"{moment}-while-connected", action, WORKS, agent=(), client_moment=moment)
         for moment in ("kill-agent", "stop-agent") for action in ("pingpong", "rdma", "long")]
ROWS += [Row("agents", f"{moment}-then-death", "killed", WORKS, agent=(), client_moment=moment) for moment in ("kill-agent", "stop-agent")]
ROWS += [Row("agents", "kill-agent-after-open", "open", WORKS, agent=(), client_moment="kill-agent"),
         Row("agents", "stop-agent-after-open", "open", told, agent=(), client_moment="stop-agent"),
         Row("agents", "no-program-of-it", "open", told, variables={"VIADUCT_VIPKAD": "/nonexistent/vipkad"}),
         Row("agents", "program-that-fails", "open", told, variables={"VIADUCT_VIPKAD": "/bin/false"}, seconds=40),
         Row("agents", "path-that-cannot-be", "open", told, variables={"VIADUCT_AGENT": "/nonexistent/agent.sock"}, seconds=40)]
