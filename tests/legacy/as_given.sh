#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Compiles each program here the way its author would have, without our build system, once with warnings and once
# without, and runs the programs that need no partner.
#
#   as_given.sh COMPILER INCLUDE-FOLDER LIBRARY-FOLDER
set -eu
compiler=$1 include=$2 library=$3
cd "$(dirname "$0")"
folder=$(python3 ../temporary.py programs)
trap 'rm -rf "$folder"' EXIT

for source in *.c; do
    program=$folder/${source%.c}
    "$compiler" -std=gnu89 -w -I"$include" "$source" -o "$program" -L"$library" -lvipl -lpthread
    if ! "$compiler" -std=gnu89 -Wall -O2 -I"$include" -c "$source" -o "$program.o" 2>"$program.warnings" ||
        [ -s "$program.warnings" ]; then
        cat "$program.warnings"
        exit 1
    fi
    echo "$source compiles as given"
done

# The functions of their own must be visible to every library of the process.
exports() {
    program=$1
    shift
    for name in "$@"; do
        nm -D --defined-only "$folder/$program" | grep -q " [TDB] $name\$" || {
            echo "$program.c does not export $name, so it shows nothing"
            exit 1
        }
    done
}
exports ring sem_wait sem_open sem_close
exports names accept bind clone connect listen recv recvfrom send sendto shutdown socket close open read unlink write

# shellcheck disable=SC2046
exports traps $(sed -n '/^#ifndef __LP64__/q; s/^NAME[A-Z_]*(\(.*\))$/\1/p' ../../core/libc/names.def)
LD_LIBRARY_PATH=$library "$folder/names"
LD_LIBRARY_PATH=$library "$folder/enum"
