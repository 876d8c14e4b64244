#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh BUILD SOURCE CMAKE GENERATOR CC LIBDIR SBINDIR BINDIR: installs into a new prefix, builds a program with pkg-config, with
# CMake and with plain -lvipl, runs each, and checks that library, agent and provider all come from that prefix and that
# the agent leaves.
set -euo pipefail
build=$1 source=$2 cmake=$3 generator=$4 cc=$5 libdir=$6 sbindir=$7 bindir=$8
user=$source/tests/install/user
prefix=$(python3 "$source/tests/temporary.py" programs)
prefix=$(readlink -f "$prefix")

# Processes that run this prefix's agent, by their executable: the name alone may be another user's.
agents() {
    local exe
    for exe in /proc/[0-9]*/exe; do
        if [[ $(readlink "$exe" 2>/dev/null || true) == "$prefix/$sbindir/vipkad"* ]]; then
            exe=${exe#/proc/}
            echo "${exe%/exe}"
        fi
    done
}

leave() {
    local pid
    for pid in $(agents); do
        kill "$pid" 2>/dev/null || true
    done
    rm -rf "$prefix"
}
trap leave EXIT

fail() {
    echo "FAILED: $*"
    exit 1
}

"$cmake" --install "$build" --prefix "$prefix" >"$prefix/install.log" || { cat "$prefix/install.log"; fail "cmake --install"; }


for file in include/vipl.h "$libdir/libvipl.so" "$libdir/libvipl.so.1" "$libdir/libgnivipl.so" "$libdir/vipl.so" \
    "$libdir/viaduct/paramnet.so" "$sbindir/vipkad" "$bindir/vipinfo" "$bindir/vipping" "$bindir/vipperf" "$bindir/vipstat" "$libdir/pkgconfig/vipl.pc" \
    "$libdir/cmake/viaduct/viaductConfig.cmake" "$libdir/wireshark/plugins/viaduct.lua" share/doc/viaduct/LICENSE share/doc/viaduct/cheat-sheet.html lib/systemd/user/vipkad.socket lib/sysusers.d/viaduct.conf \
    share/bash-completion/completions/vipperf include/cmpi_adi.h "$libdir/libcmpi-adi.so.1" \
    share/doc/viaduct/examples/cmpi_adi_ring.c; do
    [[ -e $prefix/$file ]] || fail "not installed: $file"
done
[[ $(nm -D --defined-only "$prefix/$libdir/viaduct/paramnet.so" | awk '$2 != "A" { print $3 }') == viaduct_provider_v1@@* ||
    $(nm -D --defined-only "$prefix/$libdir/viaduct/paramnet.so" | awk '{ print $3 }') == viaduct_provider_v1 ]] ||
    fail "the provider exports more than its table"
[[ $(readelf -d "$prefix/$libdir/libvipl.so.1" | grep SONAME) == *'[libvipl.so.1]'* ]] || fail "soname"

# Files that name a prefix name this one.
for file in lib/systemd/system/vipkad.service lib/systemd/user/vipkad.service; do
    grep -qx "ExecStart=$prefix/$sbindir/vipkad" "$prefix/$file" || fail "$file starts $(grep ExecStart= "$prefix/$file")"
done
grep -q "ExecStart=$prefix/$bindir/vipperf " "$prefix/lib/systemd/system/viaduct-tune.service" || fail "viaduct-tune.service: not this vipperf"
if [[ -e $prefix/share/modulefiles/cmpi ]]; then
    grep -qx "set cmpi $prefix/$libdir/cmpi" "$prefix/share/modulefiles/cmpi" || fail "the module file names another prefix"
    "$prefix/$libdir/cmpi/bin/mpicc" -v >"$prefix/mpicc.out" 2>&1 || { cat "$prefix/mpicc.out"; fail "mpicc -v"; }
fi

# The C compiler of the test, with nothing but what pkg-config says.
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs vipl)"
"$cc" -std=c89 -pedantic -Wall -Werror -o "$prefix/by-pkgconfig" "$user/program.c" "${flags[@]}" \
    -Wl,-rpath,"$prefix/$libdir"
"$cc" -o "$prefix/by-hand" "$user/program.c" -I"$prefix/include" -L"$prefix/$libdir" -lvipl -Wl,-rpath,"$prefix/$libdir"
"$cmake" -G "$generator" -S "$user" -B "$prefix/user" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_BUILD_TYPE=Release >"$prefix/user.log" 2>&1 || { cat "$prefix/user.log"; fail "find_package(viaduct)"; }
"$cmake" --build "$prefix/user" >"$prefix/user.log" 2>&1 || { cat "$prefix/user.log"; fail "viaduct::vipl"; }

# Opens the NIC, looks where everything came from while it is open, lets it close.
try() {
    local program=$1 line
    coproc { exec "$program" 2>"$prefix/errors"; }
    local pid=$COPROC_PID in=${COPROC[1]} out=${COPROC[0]}
    read -r -t 20 line <&"$out" || { cat "$prefix/errors"; fail "$program: no NIC opened"; }
    [[ $line == open ]] || fail "$program said '$line'"
    grep -q " $prefix/$libdir/libvipl.so.1" "/proc/$pid/maps" || fail "$program: libvipl is not the installed one"
    grep -q " $prefix/$libdir/viaduct/paramnet.so" "/proc/$pid/maps" || fail "$program: provider is not the installed one"
    [[ -n $(agents) ]] || fail "$program: the agent is not the installed one"
    echo >&"$in"
    read -r -t 20 line <&"$out" || { cat "$prefix/errors"; fail "$program: NIC not closed"; }
    [[ $line == closed ]] || fail "$program said '$line'"
    wait "$pid" || fail "$program: exit $?"
    [[ ! -s $prefix/errors ]] || { cat "$prefix/errors"; fail "$program was not silent"; }
}
for program in by-pkgconfig by-hand user/program; do
    try "$prefix/$program"
done

# An MPI engine of another project on the installed device alone, over each of its modules.
"$cc" -std=gnu99 -Wall -Wextra -Werror -o "$prefix/ring" "$prefix/share/doc/viaduct/examples/cmpi_adi_ring.c" -I"$prefix/include" \
    -L"$prefix/$libdir" -lcmpi-adi -Wl,-rpath,"$prefix/$libdir" -Wl,-rpath-link,"$prefix/$libdir"
for module in via shm tcp; do
    timeout 60 "$prefix/ring" 3 "$module" >"$prefix/ring.out" 2>&1 || { cat "$prefix/ring.out"; fail "the example engine over $module"; }
    [[ $(grep -c "over $module\$" "$prefix/ring.out") == 7 ]] || { cat "$prefix/ring.out"; fail "the example engine over $module"; }
done

# The agent stays for the next program, at most 3 s (vipkad(8)) times the factor, then leaves by itself.
limit=$((30 + 3 * ${VIADUCT_TIME_FACTOR:-1}))
for ((i = 0; i < 10 * limit; i++)); do
    [[ -n $(agents) ]] || break
    sleep 0.1
done
[[ -z $(agents) ]] || fail "vipkad is still there after $limit s"
echo "installed, found by pkg-config, CMake, -lvipl and -lcmpi-adi; agent and provider of the prefix; nothing left behind"
