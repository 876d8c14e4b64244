# SPDX-License-Identifier: BSD-2-Clause
"""What programs do to themselves: forks, closed descriptors, signals, users, allocators, ends of every kind."""
import os

from row import SURVIVES, WORKS, Row, works_or

ROWS = [Row("life", "plain", action, WORKS)
        for action in ("open", "pingpong", "pingpong:200:65536", "rdma", "long", "connects", "killed", "sleep", "mpi:via", "mpi:shm", "mpi:tcp",
                       "tool:vipinfo --doctor")]
# In the middle of a connection that goes on.
GOES_ON = ("child-exits", "child-_exits", "bare-fork", "child-opens", "grandchild-opens", "vfork", "spawn", "system",
           "close-standard", "block-signals", "interrupted", "setuid")
ROWS += [Row("life", f"{moment}", action, WORKS, **{f"{side}_moment": moment})
         for moment in GOES_ON for side, action in (("client", "rdma"), ("server", "long"))]
ROWS += [Row("life", f"{moment}-alone", "open", WORKS, client_moment=moment) for moment in
         ("child-opens", "grandchild-opens", "pthread_exit", "daemon", "_exit", "setuid", "close-standard")]
# After these the library may not be able to go on, but it ends in time and writes into no other file.
FEW = works_or("VIP_ERROR_RESOURCE", "VIP_DESCRIPTOR_ERROR", "VIP_INVALID_PARAMETER", "VIP_INVALID_STATE", "VIP_TIMEOUT", reason="")
ROWS += [Row("life", moment, action, FEW, client_moment=moment)
         for moment in ("closefrom", "no-files-left", "no-memory-left") for action in ("rdma", "pingpong", "open")]
# The server leaves by these, and its peer is told. The program of exec sleeps for 30 s.
ROWS += [Row("life", f"peer-{moment}", "killed", SURVIVES, server_moment=moment, seconds=60)
         for moment in ("_exit", "exec", "daemon", "pthread_exit")]
# Surroundings that the program is started in.
STARTED = {"no-stdin": ("close=0",), "no-stdout": ("close=1",), "no-stderr": ("close=2",),
           "no-standard-descriptors": ("close=0", "close=1", "close=2"), "SIGPIPE-ignored": ("ignore=PIPE",),
           "SIGPIPE-default": ("default=PIPE",), "SIGCHLD-ignored": ("ignore=CHLD",), "all-signals-blocked": ("block=all",),
           "all-ignored": ("ignore=PIPE", "ignore=CHLD", "ignore=TERM", "ignore=HUP", "ignore=SEGV", "ignore=BUS", "ignore=USR1"),
           "parent-gone": ("orphan",), "double-fork": ("doublefork",), "daemon": ("daemon",), "umask-777": ("umask=777",),
           "no-new-privileges": ("noprivs",), "another-user": ("user=4242",)}
ROWS += [Row("life", name, "rdma", WORKS, both=words) for name, words in STARTED.items()]
ROWS += [Row("life", name, action, WORKS, both=STARTED[name])
         for name in ("no-standard-descriptors", "SIGCHLD-ignored", "all-signals-blocked", "another-user") for action in ("killed", "mpi:via")]
LIBRARIES = "/usr/lib/x86_64-linux-gnu/"
MIMALLOC = "libmimalloc.so.3" if os.path.exists(LIBRARIES + "libmimalloc.so.3") else "libmimalloc.so.2.0"
ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": MIMALLOC}
ROWS += [Row("life", name, action, WORKS, variables={"LD_PRELOAD": LIBRARIES + file})
         for name, file in ALLOCATORS.items() for action in ("rdma", "long", "killed", "mpi:via")]
ROWS += [Row("life", f"{name}-child-opens", "rdma", WORKS, client_moment="child-opens", variables={"LD_PRELOAD": LIBRARIES + file})
         for name, file in ALLOCATORS.items()]
ROWS += [Row("life", "malloc-perturbed", "rdma", WORKS, variables={"MALLOC_PERTURB_": "165", "MALLOC_CHECK_": "3"})]
