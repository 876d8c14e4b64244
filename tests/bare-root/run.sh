#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh [--release NAME] [--arch NAME] [--run COMMAND] [--cache FOLDER] [--put FOLDER] [FOLDER]: makes a bare Debian
# (release: bookworm, which is the default, or trixie; arch: the machine's, or i386 on amd64) in FOLDER (default: a temporary one,
# removed afterwards), puts a clean clone of this checkout into it, and runs both commands of the README there, from nothing.
# --run: this command in place of them. --cache: this compiler cache of the machine is the root's.
# --put: this folder of the machine is seen in the root as /mnt. Needs root, debootstrap and a Debian machine whose own package
# sources are used inside as well. Where that cannot be had it says SKIPPED and why, and ends with 77. The mounts are seen in here
# only, and no process of the root stays when this one has ended.
set -euo pipefail
arguments=("$@")
skip() {
    echo "bare-root: SKIPPED, $*"
    exit 77
}

release=bookworm arch=$(dpkg --print-architecture 2>/dev/null || true) commands=('./viaduct demo' './viaduct test') cache='' put=''
while (($#)); do
    case $1 in
        --release) release=$2 && shift 2 ;;
        --arch) arch=$2 && shift 2 ;;
        --run) commands=("$2") && shift 2 ;;
        --cache) cache=$2 && shift 2 ;;
        --put) put=$2 && shift 2 ;;
        --*) echo "bare-root: unknown option $1" >&2 && exit 2 ;;
        *) break ;;
    esac
done
((EUID == 0)) || skip "needs root"
command -v debootstrap >/dev/null || skip "needs debootstrap (apt-get install debootstrap)"
if [[ -z ${BARE_ROOT_MOUNTS:-} ]]; then
    unshare --mount --pid --fork true 2>/dev/null || skip "no mount or process namespaces here"
    BARE_ROOT_MOUNTS=own exec unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
        "$(readlink -f "${BASH_SOURCE[0]}")" "${arguments[@]}"
fi
source=$(git -C "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" rev-parse --show-toplevel)

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
        umount "${mounts[i]}" 2>/dev/null || umount -l "${mounts[i]}"  # an agent of the tests may still be there
    done
    # Never delete through a mount that would not go.
    if ((!keep)) && ! grep -q " $folder/" /proc/self/mounts; then
        rm -rf --one-file-system "$folder"
    fi
}
trap leave EXIT
trap 'exit 143' TERM INT  # the first process of a namespace has to ask for signals

# This machine's "deb" sources of Debian itself: mirror and suite. The first is where debootstrap may fetch from.
own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# shellcheck disable=SC2016  # the $(...) are apt's
sources=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v own="$own" '$3 == "main" && ($2 == own || $2 == own "-updates" || $2 == own "-security") { print $1, $2 }' | sort -u)
mirror=$(awk -v own="$own" '$2 == own { print $1; exit }' <<<"$sources")
[[ -n $mirror ]] || skip "no source of Debian among this machine's package sources"

proxy=$(apt-config dump --format '%v%n' Acquire::http::Proxy | head -1)

# debootstrap's own folder goes when it has finished.
if [[ ! -x $folder/usr/bin/apt-get || -e $folder/debootstrap ]]; then
    echo "== bare-root: debootstrap of $release ($arch) into $folder"
    ${proxy:+env http_proxy="$proxy"} debootstrap --arch="$arch" --variant=minbase "$release" "$folder" "$mirror" >"$folder.log" 2>&1 || {
        tail -20 "$folder.log"
        rm -f "$folder.log"
        skip "no $release ($arch) could be had from this machine's mirror"
    }
    rm -f "$folder.log"
fi
# Inside, packages come from where this machine takes them.
rm -rf "$folder"/etc/apt/sources.list "$folder"/etc/apt/sources.list.d
awk -v own="$own" -v release="$release" '{ sub(own, release, $2); print "deb", $1, $2, "main" }' <<<"$sources" >"$folder/etc/apt/sources.list"
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
if [[ -n $cache ]]; then
    mkdir -p "$cache" "$folder/root/.cache/ccache"
    mount --bind "$cache" "$folder/root/.cache/ccache"
    mounts+=("$folder/root/.cache/ccache")
fi
if [[ -n $put ]]; then
    mount --bind "$put" "$folder/mnt"
    mounts+=("$folder/mnt")
fi

inside() {
    echo "== bare-root: $*"
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        chroot "$folder" sh -c "cd /opt/viaduct && $*"
}
# A mirror may be without the security updates of one processor.
inside 'apt-get -q update --error-on=any' ||
    { sed -i '/-security /d' "$folder/etc/apt/sources.list" && inside 'apt-get -q update --error-on=any'; } ||
    skip "the package lists of $release ($arch) could not be fetched"
# A root that was ended in the middle of an installation is used again.
inside 'export DEBIAN_FRONTEND=noninteractive; dpkg --configure -a && apt-get -q -y --fix-broken install' >/dev/null
for command in "${commands[@]}"; do
    inside "$command"
done
echo "== bare-root: passed on a bare $release ($arch): $(printf '%s; ' "${commands[@]}" | sed 's/; $//')"
