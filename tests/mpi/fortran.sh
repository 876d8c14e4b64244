#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fortran.sh MPIFORT PROGRAMS: programs of all three of Fortran's ways to MPI are compiled as a user would, with every symbol
# of the packaged layer found when they are linked and again when they are loaded, and run. Then as MPICH's own wrapper
# compiles them, with this library in front: there the packaged layer comes first, and what it has of the same name counts.
set -e
mpifort=$1
programs=$2
command -v gfortran >/dev/null || {
    echo "SKIPPED: no gfortran (Debian: gfortran)"
    exit 77
}
[ -f "/usr/include/$(gfortran -print-multiarch)/mpich/mpi.mod" ] || {
    echo "SKIPPED: no Fortran modules of MPI (Debian: libmpich-dev)"
    exit 77
}
work=$(python3 "$(dirname "$0")/../temporary.py" programs)
trap 'rm -rf "$work"' EXIT
set -- "$mpifort"
if command -v mpifort.mpich >/dev/null; then
    set -- "$mpifort" mpifort.mpich
    LD_LIBRARY_PATH=$(dirname "$mpifort")/../lib
    export LD_LIBRARY_PATH
fi
for wrapper; do for program in ring_module.f90 ring_include.f ring_f08.f90; do
    (cd "$work" && "$wrapper" -Wl,-z,now "$programs/$program" -o ring)
    said=$("$work/ring")
    echo "$program by $(basename "$wrapper"), alone: $said"
    [ "$said" = "Viaduct ring of 1" ]
    if mpiexec=$(command -v mpiexec.hydra || command -v mpiexec.mpich); then
        said=$("$mpiexec" -n 3 "$work/ring")
        echo "$program in 3 processes: $said"
        [ "$said" = "Viaduct ring of 3" ]
    fi
done; done
