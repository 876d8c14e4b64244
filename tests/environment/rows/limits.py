# SPDX-License-Identifier: BSD-2-Clause
"""Resource limits and cgroups, from too small to enough: all that is asked of one too small is an end in time with a reason."""
from row import WORKS, Row, Outcome, works_or

SAYS = r"(?i)descriptor|file|memory|limit|thread|process|space|agent|too many|cannot"
small = works_or(reason=SAYS)
dies = works_or(reason=SAYS, killed=True)


def raises_limits():
    """Whether root may raise a hard limit here (CAP_SYS_RESOURCE): an agent does so for itself, and serves under what it cannot
    raise as far as that goes."""
    with open("/proc/self/status", encoding="ascii") as file:
        effective = next(line for line in file if line.startswith("CapEff:"))
    return int(effective.split()[1], 16) >> 24 & 1 == 1


with_an_agent_that_raises = WORKS if raises_limits() else small


def limit(name, value, outcome, action="rdma", side="both", word="limit"):
    where = "" if side == "both" else f"{side}-"
    return Row("limits", f"{where}{word}-{name}-{value}", action, outcome, **{side: (f"{word}={name}:{value}",)})


MIB = 1 << 20
ROWS = [limit("NOFILE", n, dies) for n in (3, 4, 5, 6, 8, 10, 12, 16, 20, 24)]
ROWS += [limit("NOFILE", n, WORKS) for n in (64, 1000)] + [limit("NOFILE", 32, with_an_agent_that_raises)]
ROWS += [limit("NOFILE", 16, small, side=side) for side in ("server", "client")]
ROWS += [limit("NOFILE", 16, dies, "mpi:via"), limit("NOFILE", 64, WORKS, "mpi:via"), limit("NOFILE", 12, dies, "connects", word="soft")]
ROWS += [limit("AS", n * MIB, dies) for n in (16, 30, 60, 100, 200, 400)]
ROWS += [limit("AS", 2048 * MIB, WORKS), limit("AS", 64 * MIB, dies, side="server"), limit("AS", 64 * MIB, dies, side="client")]
ROWS += [limit("DATA", n * MIB, dies) for n in (1, 4, 8, 16, 32)] + [limit("DATA", 512 * MIB, WORKS)]
ROWS += [limit("STACK", n * 1024, outcome) for n, outcome in ((64, dies), (128, dies), (256, dies), (1024, WORKS), (8192, WORKS))]
ROWS += [limit("STACK", "unlimited", WORKS)]
ROWS += [limit("FSIZE", n, dies) for n in (0, 4096, 100 * 1024, 16 * MIB)] + [limit("FSIZE", 1 << 30, WORKS)]
ROWS += [Row("limits", "FSIZE-0-XFSZ-ignored", "rdma", small, both=("ignore=XFSZ", "limit=FSIZE:0")),
         Row("limits", "server-FSIZE-0", "rdma", dies, server=("limit=FSIZE:0",), agent=())]
ROWS += [limit(name, 0, WORKS) for name in ("MEMLOCK", "CORE", "SIGPENDING", "MSGQUEUE", "LOCKS", "RTPRIO", "NICE")]
ROWS += [limit("CPU", 1, dies, "sleep"), limit("CPU", 600, WORKS)]
# Limits of processes count for a user other than root.
ROWS += [Row("limits", f"NPROC-{n}", "rdma", outcome, both=("user=4242", f"limit=NPROC:{n}"))
         for n, outcome in ((0, small), (1, small), (2, small), (4, small), (200, WORKS))]
# What the agent is given when it was started so; the ends have enough.
ROWS += [Row("limits", f"agent-NOFILE-{n}", "rdma", small, agent=(f"limit=NOFILE:{n}",)) for n in (16, 20, 24, 32, 64)]
ROWS += [Row("limits", "agent-started-under-NOFILE-16", "rdma", small, server=("limit=NOFILE:16",)),
         Row("limits", "agent-started-under-CPU-1", "rdma", WORKS, server=("soft=CPU:1",)),
         Row("limits", "agent-FSIZE-0", "rdma", with_an_agent_that_raises, agent=("limit=FSIZE:0",)),
         Row("limits", "agent-AS-64M", "rdma", small, agent=(f"limit=AS:{64 * MIB}",)),
         Row("limits", "agent-nice-19", "rdma", WORKS, agent=("nice=19",)),
         Row("limits", "agent-idle", "connects", WORKS, agent=("policy=idle",))]
ROWS += [Row("limits", name, action, WORKS, both=words)
         for name, words in (("nice-19", ("nice=19",)), ("policy-idle", ("policy=idle",)), ("one-processor", ("cpu=0",)))
         for action in ("pingpong", "rdma", "sleep", "mpi:via")]
# Cgroups. A program may be killed for its memory: then the other end is told.
killed = Outcome(codes=("VIP_ERROR_RESOURCE", "VIP_DESCRIPTOR_ERROR", "VIP_TIMEOUT", "VIP_NO_MATCH"), reason="", killed=True, peer_fails=True)
ROWS += [Row("limits", f"memory-cgroup-{n}M", "rdma", outcome, both=("cgroup",), cgroup=("memory", n * MIB), agent=())
         for n, outcome in ((1, killed), (4, killed), (16, killed), (200, WORKS))]
ROWS += [Row("limits", "client-memory-cgroup-3M", "long", killed, client=("cgroup",), cgroup=("memory", 3 * MIB), agent=()),
         Row("limits", "memory-cgroup-200M", "mpi:via", WORKS, both=("cgroup",), cgroup=("memory", 200 * MIB), agent=())]
ROWS += [Row("limits", f"pids-cgroup-{n}", "rdma", outcome, both=("cgroup",), cgroup=("pids", n))
         for n, outcome in ((2, dies), (3, dies), (4, dies), (6, dies), (64, WORKS))]
ROWS += [Row("limits", f"cpu-cgroup-{percent}-percent", action, WORKS, both=("cgroup",), cgroup=("cpu", percent * 1000), seconds=60)
         for percent in (5, 20) for action in ("pingpong", "rdma")]
# More processes than the agent has descriptors for: each is served or refused, in time.
ROWS += [Row("limits", f"agent-NOFILE-{n}", f"crowd:{crowd}", WORKS, agent=(f"limit=NOFILE:{n}",), seconds=60)
         for n, crowd in ((64, 30), (256, 60), (1024, 200))]
ROWS += [Row("limits", "agent-starts-under-NOFILE-256", "crowd:100", WORKS, both=("limit=NOFILE:256",), seconds=60)]
