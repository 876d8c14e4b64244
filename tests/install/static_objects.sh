#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# static_objects.sh LIBRARY...: exit() destroys no object of these libraries. Threads still run at that time: helper
# threads of the library, and threads of the program that wait in a call (core/process/never_destroyed.hpp).
set -euo pipefail
failed=0
for library; do
    symbols=$(nm -D --undefined-only "$library")
    # Every library has it, from the compiler's own part: the list is one of symbols.
    grep -q ' __cxa_finalize\b' <<<"$symbols" || { echo "$library: nm shows no symbols"; failed=1; }
    ! grep -q ' __cxa_atexit\b' <<<"$symbols" || { echo "$library has static objects with destructors"; failed=1; }
done
exit $failed
