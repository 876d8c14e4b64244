# SPDX-License-Identifier: BSD-2-Clause
"""Kinds of memory that programs register: what the kernel does not let others copy is served by its owner."""
from row import WORKS, Row, works_or

KINDS = ("anonymous", "shared", "populated", "noreserve", "growsdown", "huge", "device", "memfd", "file-shared", "file-private", "secret",
         "dontfork", "wipeonfork", "mergeable", "hugepage", "locked")
# Secret memory the kernel lets nobody copy but its owner. Messages that are streamed work; those that the peer would copy in one
# piece, and RDMA, may be refused as if the region did not permit them.
SECRET = works_or("VIP_DESCRIPTOR_ERROR", reason="")
ROWS = [Row("memory", kind, action, SECRET if kind == "secret" else WORKS, variables={"ENVIRONMENT_MEMORY": kind})
        for kind in KINDS for action in ("rdma", "long")]
ROWS += [Row("memory", f"{side}-secret", action, SECRET, **{side: ("env=ENVIRONMENT_MEMORY=secret",)})
         for side in ("server", "client") for action in ("rdma", "long", "pingpong:200:65536")]
ROWS += [Row("memory", f"{kind}-child-opens", "rdma", WORKS, client_moment="child-opens", variables={"ENVIRONMENT_MEMORY": kind})
         for kind in ("dontfork", "wipeonfork")]
