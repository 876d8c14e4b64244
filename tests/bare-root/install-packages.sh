#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# install-packages.sh: in a bare root whose /mnt has the packages and their list. Each test of debian/tests runs with the packages that
# it depends on; then all packages are installed together. Purged each time, they leave no file, alternative, user or process.
# The root is spent afterwards.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
export DEBIAN_FRONTEND=noninteractive
echo 'deb [trusted=yes] file:/mnt ./' >/etc/apt/sources.list.d/viaduct.list
apt-get -q update >/dev/null
failed=0
fail() {
    echo "FAILED: $*"
    failed=1
}
apt() { apt-get -q -y "$@" </dev/null >/tmp/apt.log 2>&1 || { tail -30 /tmp/apt.log && exit 1; }; }

mapfile -t own < <(sed -n 's/^Package: //p' /mnt/Packages | grep -v -- '-dbgsym$')
is_own() { printf '%s\n' "${own[@]}" | grep -qx -- "$1"; }

# All that a package may leave: files, alternatives among them, and users.
state() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /mnt -o -path /opt/viaduct -o -path /root \
        -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path '/var/lib/dpkg/*' ! -path '/var/lib/dpkg/alternatives*' \) \
        -prune -o -print | sort
    cut -d: -f1 /etc/passwd
}

# Agents that a program of the packages has started, in this root: they go by themselves.
agents() {
    local exe
    for exe in /proc/[0-9]*/exe; do
        [[ $(readlink "$exe" 2>/dev/null || true) != /usr/sbin/vipkad* || ! ${exe%/exe}/root -ef / ]] || echo "$exe"
    done
}

# leave_nothing WHAT FILE: FILE is the state before.
leave_nothing() {
    local i
    for ((i = 0; i < 300; i++)); do
        [[ -n $(agents) ]] || break
        sleep 0.1
    done
    [[ -z $(agents) ]] || fail "$1: an agent is still there after 30 s"
    apt purge "${own[@]}"
    apt autoremove --purge
    state | diff "$2" - || fail "$1: purged, something is left"
}

# with PACKAGE...: what the packages of others leave is there before.
with() {
    local name others=() ours=()
    for name in "$@"; do
        if is_own "$name"; then ours+=("$name"); else others+=("$name"); fi
    done
    ((!${#others[@]})) || apt install --no-install-recommends "${others[@]}"
    state >/tmp/before
    apt install --no-install-recommends "${ours[@]}"
}

while read -r key value; do
    case $key in
        Tests:) test=$value ;;
        Depends:)
            echo "== install-packages: debian/tests/$test, with $value"
            # shellcheck disable=SC2086 # names are words
            with ${value//,/}
            "debian/tests/$test" || fail "debian/tests/$test"
            leave_nothing "$test" /tmp/before
            ;;
    esac
done <debian/tests/control

echo "== install-packages: all together: ${own[*]}"
with "${own[@]}"
dpkg --verify "${own[@]}" || fail "a file of the packages is not as it was packed"
vipinfo || fail "vipinfo"
leave_nothing "all packages" /tmp/before
((failed == 0)) && echo "install-packages: passed"
exit $failed
