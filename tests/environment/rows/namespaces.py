# SPDX-License-Identifier: BSD-2-Clause
"""Containers and pods: the ends and their agent in namespaces of their own or together."""
from row import WORKS, Row, refused, works_or

PID = ("ns-pid", "ns-mount", "ns-ipc")

# A pod: one network namespace for all, a PID namespace for each, and wherever the agent came up.
POD_AGENTS = {"its-own": PID, "outside": (), "with-the-server": None}
ROWS = [Row("namespaces", f"pod-agent-{where}", action, WORKS, both=PID, agent=agent, own_network=True)
        for where, agent in POD_AGENTS.items()
        for action in ("pingpong", "pingpong:200:65536", "rdma", "long", "killed")]
ROWS += [Row("namespaces", f"pod-agent-{where}", action, WORKS, both=PID, agent=agent, own_network=True)
         for where, agent in (("its-own", PID), ("outside", ())) for action in ("mpi:via", "mpi:tcp", "connects", "sleep")]
# Ranks of two containers may have no memory in common; then that is said.
ROWS += [Row("namespaces", "pod-agent-outside", "mpi:shm", works_or(reason="no protocol reaches process . by shm"), both=PID, agent=(),
             own_network=True)]
ROWS += [Row("namespaces", "pod-agent-its-own", "rdma:4:0", WORKS, both=("setarch-R", *PID), agent=PID, own_network=True)]
# The agent alone, or one end alone, in a PID namespace.
ROWS += [Row("namespaces", "agent-in-pid", action, WORKS, agent=PID) for action in ("rdma", "long", "killed", "mpi:via")]
ROWS += [Row("namespaces", "server-in-pid", action, WORKS, server=PID, agent=()) for action in ("rdma", "long", "killed", "mpi:via")]
ROWS += [Row("namespaces", "client-in-pid", action, WORKS, client=PID, agent=()) for action in ("rdma", "long", "killed")]
ROWS += [Row("namespaces", "pid-with-an-old-proc", action, WORKS, both=("ns-pid-old-proc",), agent=())
         for action in ("rdma", "long", "killed")]
ROWS += [Row("namespaces", "doctor-in-pod", "tool:vipinfo --doctor", WORKS, both=PID, agent=PID)]
# Others, one at a time and all together.
ROWS += [Row("namespaces", f"both-in-{name}", "rdma", WORKS, both=(name,))
         for name in ("ns-mount", "ns-ipc", "ns-uts", "ns-cgroup", "ns-user", "ns-time-later", "ns-time-earlier")]
ROWS += [Row("namespaces", f"server-in-{name}", action, WORKS, server=(name,), agent=())
         for name in ("ns-mount", "ns-ipc", "ns-uts", "ns-time-later", "ns-time-earlier") for action in ("rdma", "sleep")]
ROWS += [Row("namespaces", "client-in-ns-user", "rdma", works_or("VIP_NO_MATCH", "VIP_ERROR_RESOURCE"), client=("ns-user",), agent=()),
         Row("namespaces", "time-later-mpi", "mpi:via", WORKS, client=("ns-time-later",), agent=()),
         Row("namespaces", "time-later-killed", "killed", WORKS, server=("ns-time-later",), agent=())]
# A network namespace is another host to paramnet: no process there answers, in time.
ROWS += [Row("namespaces", "client-in-ns-net", "pingpong", refused("VIP_NO_MATCH", "VIP_TIMEOUT", reason=""), client=("ns-net",), agent=(),
             variables={"ENVIRONMENT_TIMEOUT_MS": "1500"})]
