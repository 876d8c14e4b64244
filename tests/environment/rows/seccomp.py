# SPDX-License-Identifier: BSD-2-Clause
"""System calls that a container's filter forbids: EPERM as most do, ENOSYS as newer ones do for calls they do not know."""
from row import WORKS, Row, works_or

ONE_BY_ONE = ("process_vm_readv,process_vm_writev", "process_vm_readv", "process_vm_writev", "membarrier", "pidfd_open",
              "memfd_create", "rseq", "close_range", "clone3", "getrandom", "eventfd2", "sched_setaffinity", "sched_yield",
              "fallocate", "fstatfs", "mincore", "mremap", "getsockopt", "epoll_create1", "prlimit64", "fcntl", "signalfd4")
# Without these there is nothing to share, no thread, or no agent to trust; that is said. (The C library makes threads without
# clone3 only when the system does not know it.)
NEEDED = {"memfd_create": r"(?i)memory", "getsockopt": r"(?i)getsockopt|credentials|agent", "fcntl": r"(?i)memory|seal|agent",
          "eventfd2": r"(?i)eventfd|descriptor", "epoll_create1": r"(?i)epoll|agent|thread", "getrandom": r"(?i)random",
          "clone3-EPERM": r"(?i)thread", "fstatfs": r"(?i)fstatfs|file|memory"}


def outcome(call, error):
    reason = NEEDED.get(call) or NEEDED.get(f"{call}-{error}")
    return works_or(reason=reason) if reason else WORKS


ROWS = [Row("seccomp", f"without-{call}-{error}", "rdma", outcome(call, error), both=(f"deny={call}:{error}",))
        for call in ONE_BY_ONE for error in ("EPERM", "ENOSYS")]
ROWS += [Row("seccomp", f"{side}-without-{call}", action, WORKS, **{side: (f"deny={call}:EPERM",)})
         for side in ("server", "client") for call in ("process_vm_readv,process_vm_writev", "pidfd_open", "membarrier", "rseq")
         for action in ("rdma", "long")]
ROWS += [Row("seccomp", "without-most", action, WORKS,
             both=("deny=process_vm_readv,process_vm_writev,membarrier,pidfd_open,rseq,close_range,clone3,sched_setaffinity:ENOSYS",))
         for action in ("rdma", "long", "killed", "connects", "sleep", "mpi:via", "mpi:shm", "mpi:tcp")]
ROWS += [Row("seccomp", f"without-{call}-{error}", "killed", WORKS, both=(f"deny={call}:{error}",))
         for call, error in (("pidfd_open", "EPERM"), ("pidfd_open", "ENOSYS"), ("membarrier", "EPERM"), ("clone3", "ENOSYS"))]
# The MPI modules, where a process cannot be watched by a descriptor.
ROWS += [Row("seccomp", f"without-pidfd_open-{error}", f"mpi:{protocol}", WORKS, both=(f"deny=pidfd_open:{error}",))
         for error in ("EPERM", "ENOSYS") for protocol in ("via", "shm", "tcp")]
