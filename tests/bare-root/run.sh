#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh [--quick] [FOLDER]: makes a bare Debian 12 in FOLDER (default: a temporary one, removed afterwards), puts a clean
# clone of this checkout into it, and runs both commands of the README there, the tests as continuous integration starts
# them. --quick: only the release tests. Needs root, debootstrap and a Debian machine whose own package sources are used
# inside as well. Mounts are undone however it ends.
set -euo pipefail
((EUID == 0)) || { echo "bare-root: needs root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "bare-root: needs debootstrap (apt-get install debootstrap)" >&2; exit 1; }
source=$(git -C "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" rev-parse --show-toplevel)

tests=.ci/run
if [[ ${1:-} == --quick ]]; then
    tests='./viaduct test --quick'
    shift
fi
keep=1 folder=${1:-}
if [[ -z $folder ]]; then
    folder=$(mktemp -d)
    keep=0
fi
mkdir -p "$folder"
folder=$(readlink -f "$folder")

mounts=()
leave() {
    local i
    umount "$folder/run/netns" 2>/dev/null || true  # made by `ip netns`, which the tests call
    for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do
        umount "${mounts[i]}" || umount -l "${mounts[i]}"
    done
    # Never delete through a mount that would not go.
    if ((!keep)) && ! grep -q " $folder/" /proc/self/mounts; then
        rm -rf --one-file-system "$folder"
    fi
}
trap leave EXIT

# The first "deb" source of this machine that has bookworm: where debootstrap may fetch from.
# shellcheck disable=SC2016  # the $(...) are apt's
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk '$2 == "bookworm" && $3 == "main" { print $1; exit }')
[[ -n $mirror ]] || { echo "bare-root: no source of Debian 12 among this machine's package sources" >&2; exit 1; }

proxy=$(apt-config dump --format '%v%n' Acquire::http::Proxy | head -1)

if [[ ! -x $folder/usr/bin/apt-get ]]; then
    echo "== bare-root: debootstrap into $folder"
    ${proxy:+env http_proxy="$proxy"} debootstrap --variant=minbase bookworm "$folder" "$mirror" >"$folder/debootstrap.log" 2>&1 ||
        { tail -20 "$folder/debootstrap.log"; exit 1; }
    rm -f "$folder/debootstrap.log"
fi
# Inside, packages come from where this machine takes them.
rm -rf "$folder"/etc/apt/sources.list "$folder"/etc/apt/sources.list.d
cp -a /etc/apt/sources.list.d "$folder/etc/apt/" 2>/dev/null || true
if [[ -f /etc/apt/sources.list ]]; then cp /etc/apt/sources.list "$folder/etc/apt/"; fi
if [[ -n $proxy ]]; then echo "Acquire::http::Proxy \"$proxy\";" >"$folder/etc/apt/apt.conf.d/99proxy"; fi
cp -L /etc/resolv.conf /etc/hosts "$folder/etc/"

rm -rf "$folder/opt/viaduct"
git -c safe.directory='*' clone -q "$source" "$folder/opt/viaduct"

# A mount of its own, as a root is: `ip netns exec` changes how mounts of / spread.
mount --bind "$folder" "$folder"
mounts+=("$folder")
for name in proc sys dev; do
    mount --bind "/$name" "$folder/$name"
    mounts+=("$folder/$name")
done
mount -t tmpfs tmpfs "$folder/tmp"
mounts+=("$folder/tmp")

inside() {
    echo "== bare-root: $*"
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        chroot "$folder" sh -c "cd /opt/viaduct && $*"
}
inside ./viaduct demo
inside "$tests"
echo "== bare-root: both commands passed on a bare Debian 12"
