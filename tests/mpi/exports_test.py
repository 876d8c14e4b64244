#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""exports_test.py LIBRARY HEADER: what mpi.h declares is what the library exports, each function as a weak MPI_X over a
strong PMPI_X, together with the data symbols without which the packaged Fortran layer does not load."""

import re
import subprocess
import sys

FORTRAN_DATA = {
    "MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY", "MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "MPI_F08_STATUS_IGNORE",
    "MPI_F08_STATUSES_IGNORE", "MPIR_F08_MPI_STATUS_IGNORE_OBJ", "MPIR_F08_MPI_STATUSES_IGNORE_OBJ",
    "MPIR_F08_MPI_IN_PLACE", "MPIR_F08_MPI_BOTTOM", "MPIR_C_MPI_UNWEIGHTED", "MPIR_C_MPI_WEIGHTS_EMPTY",
}  # fmt: skip


def main():
    library, header = sys.argv[1:]
    symbols = {}
    for line in subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.splitlines():
        _, kind, name = line.split()
        symbols[name] = kind
    text = re.sub(r"#define CMPI_FUNCTION.*?parameters\n", "", open(header).read(), flags=re.S)
    declared = set(re.findall(r"CMPI_FUNCTION\(\w+, (\w+),", text))
    faults = []
    for name in sorted(declared):
        if symbols.get("MPI_" + name) != "W":
            faults.append(f"MPI_{name} is declared and not a weak export")
        if symbols.get("PMPI_" + name) != "T":
            faults.append(f"PMPI_{name} is declared and not a strong export")
    for name, kind in symbols.items():
        if kind == "W" and name.startswith("MPI_") and name[4:] not in declared:
            faults.append(f"{name} is exported and not declared")
    faults += [f"{name}: data symbol missing" for name in sorted(FORTRAN_DATA - symbols.keys())]
    print("\n".join(faults))
    print(f"{len(declared)} functions declared, {len(faults)} faults")
    sys.exit(1 if faults or len(declared) < 129 else 0)


if __name__ == "__main__":
    main()
