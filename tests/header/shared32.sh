#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Is what processes share laid out alike in programs of 32 bits?   shared32.sh CXX SOURCEDIR
# The assertions beside the layouts are compiled for 32 bits. Only types are looked at, so that the headers that the compiler
# has for its own kind of program do: no libraries of 32 bits are needed.
set -u

if [ $# -ne 2 ]; then
    echo "usage: $0 CXX SOURCEDIR" >&2
    exit 2
fi
CXX=$1 SOURCE=$2
WORK=$(mktemp -d) || exit 2
trap 'rm -rf "$WORK"' EXIT
trap 'exit 1' HUP INT TERM

mkdir "$WORK/gnu"
: >"$WORK/gnu/stubs-32.h"  # of the C library: which of its functions do nothing
folders=$("$CXX" -xc++ -E -v /dev/null 2>&1 | sed -n '/^#include </,/^End of/s/^ /-isystem/p')
layouts() {
    # shellcheck disable=SC2086  # one word for each folder
    "$CXX" -xc++ -m32 -std=c++20 -fsyntax-only -I"$WORK" -I"$SOURCE" -I"$SOURCE/include" $folders - >"$WORK/said" 2>&1
}

# Of the 64-bit words of an i386 program Clang does not say that they are read and written at once, which the layouts ask for.
able='#include <atomic>
static_assert(sizeof(void*) == 4 && std::atomic<unsigned long long>::is_always_lock_free);'
if ! echo "$able" | layouts; then
    sed 's/^/    /' "$WORK/said" | head -5
    echo "SKIPPED: this compiler does not look at such programs of 32 bits"
    exit 77
fi
headers='#include "core/agent/message_layout.cpp"
#include "core/memory/region_table.hpp"
#include "core/stats/layout.hpp"
#include "providers/paramnet/segment_layout.hpp"'
if ! echo "$headers" | layouts; then
    cat "$WORK/said"
    echo "FAILED: a layout is not the same in programs of 32 bits"
    exit 1
fi
# Where a word of 64 bits stands behind one of 32, it is not: this check can fail.
planted='struct Planted { uint32_t first; uint64_t second; }; static_assert(offsetof(Planted, second) == 8);'
if printf '%s\n%s\n' "$headers" "$planted" | layouts || ! grep -q 'static assertion failed' "$WORK/said"; then
    echo "FAILED: a layout that is not the same was not noticed"
    exit 1
fi
echo "the same layouts in programs of 32 bits"
