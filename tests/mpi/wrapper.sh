#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# wrapper.sh CMPI: mpicc compiles, links and runs a program where its folder has a blank, a quote and an umlaut in its
# name, in one step and in two, and a shell that runs the printed command of -show does the same. It answers the questions
# and takes the compilers that build systems give to MPICH's wrapper, and mpi.h is C90.
set -e
work=$(python3 "$(dirname "$0")/../temporary.py" programs)
trap 'rm -rf "$work"' EXIT
prefix="$work/o'ne two ü"
mkdir -p "$prefix/bin"
cp "$1/bin/mpicc" "$prefix/bin"
ln -s "$1/include" "$1/lib" "$prefix"
cd "$work"
cat >'a program.c' <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
    int size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Finalize();
    printf("%d\n", size);
    return 0;
}
END
compiler="$prefix/bin/mpicc"
"$compiler" 'a program.c' -o whole
"$compiler" -c 'a program.c' -o part.o
"$compiler" part.o -o parts
eval "$("$compiler" -show 'a program.c' -o shown)"
for program in whole parts shown; do
    said=$(./$program)
    echo "$program: $said"
    [ "$said" = 1 ]
    readelf -d $program | grep -F "[$prefix/lib]" >/dev/null || { echo "$program does not look for its library in $prefix/lib" && exit 1; }
done

compiles=$("$compiler" -compile_info) links=$("$compiler" -link-info)
echo "$compiles / $links"
case $compiles in *-lmpich*) exit 1 ;; *-I*) ;; *) exit 1 ;; esac
case $links in *-L*-lmpich*) ;; *) exit 1 ;; esac
[ "$("$compiler" -cc='other compiler' -compile-info -DX)" = "other compiler ${compiles#* } -DX" ]
[ "$(MPICH_CC=another "$compiler" -compile_info)" = "another ${compiles#* }" ]
[ "$(MPICH_CC=another CMPI_CC=own "$compiler" -compile_info)" = "own ${compiles#* }" ]
echo '#include <mpi.h>' >c90.c
"$compiler" -ansi -pedantic-errors -Wall -Werror -c c90.c
