# SPDX-License-Identifier: BSD-2-Clause
"""Folders that are missing, tiny or may not be written."""
from row import WORKS, Row, works_or

PLACES = ("tmp-readonly", "shm-readonly", "shm-tiny", "shm-noexec", "no-shm", "no-proc", "no-sys", "no-run", "no-etc", "root-readonly",
          "proc-hidden")
ROWS = [Row("folders", place, "rdma", WORKS, both=(place,)) for place in PLACES]
ROWS += [Row("folders", place, "killed", WORKS, both=(place,)) for place in ("no-shm", "no-proc", "root-readonly")]
ROWS += [Row("folders", place, f"mpi:{protocol}", WORKS, both=(place,))
         for place in ("tmp-readonly", "shm-readonly", "shm-tiny", "no-shm", "root-readonly") for protocol in ("via", "shm")]
# The ranks of a node find each other's memory in /proc.
ROWS += [Row("folders", "no-proc", "mpi:via", WORKS, both=("no-proc",)), Row("folders", "no-proc", "mpi:tcp", WORKS, both=("no-proc",)),
         Row("folders", "no-proc", "mpi:shm", works_or(reason="cannot be opened"), both=("no-proc",))]
ROWS += [Row("folders", f"{name}", "rdma", WORKS, variables=variables)
         for name, variables in (("no-HOME", {"HOME": None}), ("HOME-nowhere", {"HOME": "/nonexistent"}),
                                 ("TMPDIR-nowhere", {"TMPDIR": "/nonexistent"}),
                                 ("XDG-nowhere", {"XDG_CONFIG_HOME": "/nonexistent", "XDG_RUNTIME_DIR": "/nonexistent"}),
                                 ("configuration-nowhere", {"VIADUCT_CONFIG": "/nonexistent"}), ("log-nowhere", {"VIADUCT_LOG_FILE": "/nonexistent/log"}),
                                 ("log-to-full", {"VIADUCT_LOG_FILE": "/dev/full", "VIADUCT_LOG": "debug"}))]
ROWS += [Row("folders", f"doctor-{place}", "tool:vipinfo --doctor", WORKS, both=(place,)) for place in ("no-proc", "no-shm", "root-readonly")]
