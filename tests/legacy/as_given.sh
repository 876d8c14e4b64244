#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Compiles each program here the way its author would have, without our build system, once with warnings and once
# without, and runs the program that needs no partner.
#
#   as_given.sh COMPILER INCLUDE-FOLDER LIBRARY-FOLDER
set -eu
compiler=$1 include=$2 library=$3
cd "$(dirname "$0")"
folder=$(mktemp -d)
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

# The functions of its own that ring.c exports must be visible to every library of the process.
for name in sem_wait sem_open sem_close; do
    nm -D --defined-only "$folder/ring" | grep -q " T $name\$" || {
        echo "ring.c does not export $name, so it shows nothing"
        exit 1
    }
done
LD_LIBRARY_PATH=$library "$folder/enum"
