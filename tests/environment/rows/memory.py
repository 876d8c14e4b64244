# SPDX-License-Identifier: BSD-2-Clause
"""Kinds of memory that programs register: what the kernel does not let others copy is served by its owner."""
from row import WORKS, Row

KINDS = ("anonymous", "shared", "populated", "noreserve", "growsdown", "huge", "device", "memfd", "file-shared", "file-private", "secret",
         "dontfork", "wipeonfork", "mergeable", "hugepage", "locked")
ROWS = [Row("memory", kind, action, WORKS, variables={"ENVIRONMENT_MEMORY": kind})
        for kind in KINDS for action in ("rdma", "long")]
ROWS += [Row("memory", f"{side}-secret", action, WORKS, **{side: ("env=ENVIRONMENT_MEMORY=secret",)})
         for side in ("server", "client") for action in ("rdma", "long", "pingpong:200:65536")]
ROWS += [Row("memory", f"{kind}-child-opens", "rdma", WORKS, client_moment="child-opens", variables={"ENVIRONMENT_MEMORY": kind})
         for kind in ("dontfork", "wipeonfork")]
