#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Does vipl.h serve every program it promises to serve?   run.sh CC CXX INCLUDEDIR
# Prints one line per check, "ok" or "FAILED" with the compiler's words below it; exits 1 if any failed.
set -u

if [ $# -ne 3 ]; then
    echo "usage: $0 CC CXX INCLUDEDIR" >&2
    exit 2
fi
CC=$1 CXX=$2 INCLUDE=$3
HERE=$(cd "$(dirname "$0")" && pwd)
WORK=$(python3 "$HERE/../temporary.py" programs) || exit 2
trap 'rm -rf "$WORK"' EXIT
trap 'exit 1' HUP INT TERM
checks=0 failures=0

STRICT="-pedantic -Wall -Wextra -Werror -Wno-unused-function -Wno-unused-variable"
C_MODES="c89 gnu89 c99 gnu99 c11 gnu11 c17 gnu17 c2x gnu2x"
CXX_MODES="c++98 gnu++98 c++11 c++14 c++17 c++20 gnu++20 c++2b"

# check NAME COMMAND...: the command must succeed.
check() {
    what=$1
    shift
    checks=$((checks + 1))
    if "$@" >"$WORK/said" 2>&1; then
        printf 'ok      %s\n' "$what"
    else
        failures=$((failures + 1))
        printf 'FAILED  %s\n' "$what"
        sed 's/^/        /' "$WORK/said"
    fi
}

# reject NAME WORD COMMAND...: the command must fail, and say WORD; shows that a check of ours can fail.
reject() {
    what=$1 word=$2
    shift 2
    checks=$((checks + 1))
    if ! "$@" >"$WORK/said" 2>&1 && grep -q "$word" "$WORK/said"; then
        printf 'ok      %s\n' "$what"
    else
        failures=$((failures + 1))
        printf 'FAILED  %s\n' "$what"
        sed 's/^/        /' "$WORK/said"
    fi
}

# ---- every language mode ----------------------------------------------------------------------------------------
for mode in $C_MODES; do
    for source in layout calls codes names predefined; do
        check "$source.c as $mode" "$CC" -std=$mode $STRICT -I"$INCLUDE" -fsyntax-only "$HERE/$source.c"
    done
done
for mode in $CXX_MODES; do
    for source in layout calls codes names predefined; do
        check "$source.c as $mode" "$CXX" -x c++ -std=$mode $STRICT -Wno-invalid-offsetof -I"$INCLUDE" -fsyntax-only \
            "$HERE/$source.c"
    done
done

# ---- warnings that programs and builds may have switched on ------------------------------------------------------
check "quiet under many warnings (C)" "$CC" -std=c89 $STRICT -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
    -Wpadded -Wno-padded -Wundef -Wc++-compat -Wredundant-decls -Wdeclaration-after-statement -I"$INCLUDE" \
    -fsyntax-only "$HERE/calls.c"
check "quiet under many warnings (C++)" "$CXX" -x c++ -std=c++20 $STRICT -Wshadow -Wundef -Wold-style-cast \
    -Wconversion -Wredundant-decls -I"$INCLUDE" -fsyntax-only "$HERE/calls.c"

# ---- the ways of 1999 --------------------------------------------------------------------------------------------
# In the later modes a compiler of today refuses a type left out (GCC 14, Clang 16), unless it is told not to.
for mode in gnu89 gnu99 gnu17; do
    old=
    [ $mode = gnu89 ] || old="-Wno-implicit-int -Wno-implicit-function-declaration"
    check "kandr.c as $mode" "$CC" -std=$mode -w $old -I"$INCLUDE" -fsyntax-only "$HERE/kandr.c"
done
for how in "" -DOURS_FIRST; do
    for guard in 1 2; do
        check "private copy with guard $guard ${how:--DPRIVATE_FIRST}" "$CC" -std=c89 $STRICT $how -DPRIVATE_GUARD=$guard \
            -I"$INCLUDE" -I"$HERE" -fsyntax-only "$HERE/guards.c"
    done
done
for mode in c89 gnu17; do
    check "CS and DS as macros, $mode" "$CC" -std=$mode $STRICT -DWITH_SEGMENT_REGISTERS -I"$INCLUDE" -fsyntax-only \
        "$HERE/predefined.c"
done
check "CS and DS as macros, c++98" "$CXX" -x c++ -std=c++98 $STRICT -DWITH_SEGMENT_REGISTERS -I"$INCLUDE" -fsyntax-only \
    "$HERE/predefined.c"
printf '#define VIP_KERNEL\n#include <vipl.h>\n#ifdef VIP_INFINITE\n#error "not hidden"\n#endif\nextern VIP_ULONG x;\n' \
    >"$WORK/kernel.c"
check "VIP_KERNEL hides VIP_INFINITE" "$CC" -std=c89 $STRICT -I"$INCLUDE" -fsyntax-only "$WORK/kernel.c"

# ---- system headers around it ------------------------------------------------------------------------------------
for order in before after; do
    {
        [ $order = after ] && echo '#include <vipl.h>'
        for header in stdint stdbool stdio stdlib string unistd errno signal pthread semaphore malloc netdb \
            netinet/in sys/types sys/mman sys/socket sys/ucontext; do
            echo "#include <$header.h>"
        done
        echo '#include <vipl.h>'
        echo 'extern VIP_DESCRIPTOR d; VIP_DESCRIPTOR d;'
    } >"$WORK/around_$order.c"
    check "system headers included $order" "$CC" -std=gnu17 -D_GNU_SOURCE $STRICT -I"$INCLUDE" -fsyntax-only \
        "$WORK/around_$order.c"
    check "system headers included $order, C++" "$CXX" -x c++ -std=c++20 -D_GNU_SOURCE $STRICT -I"$INCLUDE" \
        -fsyntax-only "$WORK/around_$order.c"
done

# ---- 32 bit: layout only, no libraries needed --------------------------------------------------------------------
if echo 'int x;' | "$CC" -m32 -x c -fsyntax-only - 2>/dev/null; then
    for mode in c89 c17; do
        check "layout.c as $mode, 32 bit" "$CC" -m32 -std=$mode $STRICT -I"$INCLUDE" -fsyntax-only "$HERE/layout.c"
    done
    check "calls.c as c++98, 32 bit" "$CXX" -x c++ -m32 -std=c++98 $STRICT -I"$INCLUDE" -fsyntax-only "$HERE/calls.c"
else
    echo "--      32 bit: this compiler has no -m32, layout not checked there"
fi

# ---- what it brings into the program's name space ----------------------------------------------------------------
macros_of() { "$CC" -dM -E "$@" | sed 's/^#define \([A-Za-z0-9_]*\).*/\1/' | sort; }
only_our_macros() {
    echo >"$WORK/empty.c"
    macros_of "$WORK/empty.c" >"$WORK/macros.empty" || return 1
    macros_of -I"$INCLUDE" -include vipl.h "$WORK/empty.c" >"$WORK/macros.all" || return 1
    comm -13 "$WORK/macros.empty" "$WORK/macros.all" >"$WORK/macros.new"
    grep -q '^VIP_STATUS_DONE$' "$WORK/macros.new" || { echo "vipl.h was not read"; return 1; }
    ! grep -Ev '^(VIP_[A-Z0-9_]+|VI_CALL|IN|OUT|_VIPL_|_VIPL_H)$' "$WORK/macros.new"
}
check "macros: VIP_, VI_CALL, IN, OUT and the two guards only" only_our_macros

includes_nothing() {
    # stdc-predef.h comes from the compiler itself, into every file.
    "$CC" -M -I"$INCLUDE" -x c "$INCLUDE/vipl.h" | tr ' \\' '\n\n' | grep '\.h$' | grep -Ev '/(vipl|stdc-predef)\.h$' \
        >"$WORK/included"
    [ ! -s "$WORK/included" ] || { cat "$WORK/included"; return 1; }
}
check "includes no other header" includes_nothing

# Every identifier at file scope or in an enumeration, by brackets counted in the preprocessed text.
only_our_names() {
    printf '#include <vipl.h>\n' | "$CC" -std=c89 -I"$INCLUDE" -E -P -x c - >"$WORK/vipl.i" || return 1
    grep -q VipOpenNic "$WORK/vipl.i" || { echo "vipl.h was not read"; return 1; }
    sed 's/^#.*//; s/\([^A-Za-z0-9_]\)/\n\1\n/g' "$WORK/vipl.i" | awk '
        /^[ \t]*$/ { next }
        $0 == "enum"                { in_enum = 1 }
        $0 == "{"                   { braces++ }
        $0 == "}"                   { braces--; if (!braces) in_enum = 0 }
        $0 == "("                   { parens++ }
        $0 == ")"                   { parens-- }
        { pointer = (before == "(" && $0 == "*"); named = (after_pointer && /^[A-Za-z_]/); after_pointer = pointer; before = $0 }
        /^[A-Za-z_]/ && ((!braces && !parens) || in_enum || named) && \
        !/^(typedef|struct|union|enum|extern|const|void|char|short|int|long|unsigned|signed|__extension__)$/ && \
        !/^(VIP_[A-Za-z0-9_]+|_VIP_[A-Z_]+|Vip[A-Z][A-Za-z]+)$/ { print "stray name: " $0; bad = 1 }
        /^Vip[A-Z]/                 { calls++ }
        END { if (calls != 46) { print "calls seen: " calls; bad = 1 } exit bad }'
}
check "names: VIP_, _VIP_ and Vip only, 46 calls" only_our_names

plain_c_names() {
    "$CXX" -x c++ -std=c++20 -I"$INCLUDE" -c "$HERE/calls.c" -o "$WORK/calls.o" || return 1
    [ "$(nm -u "$WORK/calls.o" | grep -c ' Vip[A-Z][A-Za-z]*$')" -eq 46 ]
}
check "C++ programs ask for plain C names" plain_c_names

hidden_callers() {
    "$CC" -fvisibility=hidden -fPIC -I"$INCLUDE" -c "$HERE/calls.c" -o "$WORK/hidden.o" || return 1
    ! readelf -sW "$WORK/hidden.o" | grep ' Vip' | grep -v DEFAULT
}
check "calls stay visible where the program hides its own" hidden_callers

# ---- the descriptor at run time ----------------------------------------------------------------------------------
runs() {
    "$CC" -std=c89 $STRICT -Wno-array-bounds "$@" -I"$INCLUDE" "$HERE/dialects.c" -o "$WORK/dialects" && timeout 20 "$WORK/dialects"
}
# A constant index beyond two draws a warning, as it always did; the code must be right all the same.
for flags in -O0 -O2 "-O3 -funroll-loops" "-O3 -D_FORTIFY_SOURCE=2"; do
    check "both dialects and long descriptors, $flags" runs $flags
done
if "$CC" -dM -E -x c /dev/null | grep -q __clang__; then
    echo "--      bounds sanitizer: Clang's stops at DS[2] whatever the block behind it, not run"
else
    check "both dialects and long descriptors, bounds sanitizer" runs -O1 -fsanitize=bounds -fsanitize-undefined-trap-on-error
fi

# ---- the checks themselves ---------------------------------------------------------------------------------------
mkdir "$WORK/broken"
sed 's/VIP_UINT16 SegCount;/VIP_UINT32 SegCount;/' "$INCLUDE/vipl.h" >"$WORK/broken/vipl.h"
reject "a changed member is noticed" holds_in_line "$CC" -std=c89 -I"$WORK/broken" -fsyntax-only "$HERE/layout.c"
sed 's/^#define VIP_TRUE 1/#include <stdbool.h>\n&/' "$INCLUDE/vipl.h" >"$WORK/broken/vipl.h"
reject "an included stdbool.h is noticed" error "$CC" -std=gnu17 -I"$WORK/broken" -fsyntax-only "$HERE/names.c"
sed 's/^#define VIP_TRUE 1/#include <semaphore.h>\n&/' "$INCLUDE/vipl.h" >"$WORK/broken/vipl.h"
reject "an included semaphore.h is noticed" error "$CC" -std=gnu17 -I"$WORK/broken" -fsyntax-only "$HERE/names.c"
sed 's/VIP_ULONG Timeout,/int Timeout,/' "$INCLUDE/vipl.h" >"$WORK/broken/vipl.h"
reject "a changed parameter is noticed" error "$CC" -std=c89 $STRICT -I"$WORK/broken" -fsyntax-only "$HERE/calls.c"

echo "$checks checks, $failures failed"
[ "$failures" -eq 0 ]
