# SPDX-License-Identifier: BSD-2-Clause
"""Mutants of jobs that go on when processes die."""

from mutant import Mutant

ROBUST = "mpi-adi/engine/robust/"
CALLS = ("ctest mpi.robust.calls.shm",)
TARGETS = ("viaduct_runtime", "viaduct_mpi_robust_calls")

MUTANTS = [
    Mutant(
        "revocation-untold", (), "the other members hear of no revocation",
        ROBUST + "revoke.cpp",
        "members.send(i, Control::revoke, {});", "(void)i;",
        CALLS, targets=TARGETS,
    ),
    Mutant(
        "acknowledged-by-the-leader", (), "a loss counts as acknowledged when the leader has done so",
        ROBUST + "agreement.cpp",
        "decision.acknowledged[one] && vote.acknowledged[one];", "decision.acknowledged[one];",
        CALLS, targets=TARGETS,
    ),
    Mutant(
        "acknowledged-and-told-again", (), "a loss that is acknowledged ends a receive from anywhere once more",
        ROBUST + "state.cpp",
        "    for (Request* const request : again) wait_on(*request);\n", "",
        CALLS, targets=TARGETS,
    ),
]
