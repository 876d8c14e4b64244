#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# packages.sh [--twice]: Debian's packages of this tree, into build/packages. They are made out of a copy of the files that git
# tracks, so that nothing of the tree changes. lintian, where it is installed, must have neither errors nor warnings. --twice: they
# are made once more, in a folder of another name and under another mask, language and zone, and must be the same to the byte.
set -euo pipefail
source=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
twice=0
while (($#)); do
    case $1 in
        --twice) twice=1 ;;
        *) echo "usage: ${0##*/} [--twice]" >&2 && exit 2 ;;
    esac
    shift
done
out=$source/build/packages
rm -rf "$out"
mkdir -p "$out"
version=$(dpkg-parsechangelog -l "$source/debian/changelog" -S Version)

# The files of the tree into a new folder; without git all but what is built.
copy() {
    mkdir -p "$1"
    if git -c safe.directory='*' -C "$source" rev-parse --git-dir >/dev/null 2>&1; then
        git -c safe.directory='*' -C "$source" ls-files -z
    else
        (cd "$source" && find . -path ./.git -prune -o -path './build*' -prune -o \( -type f -o -type l \) -print0)
    fi | tar -C "$source" --null --files-from=- -c | tar -C "$1" -x
}

# debhelper gives a build another home, in which there is no cache.
if command -v ccache >/dev/null && [[ -d /usr/lib/ccache ]]; then
    CCACHE_DIR=$(ccache --get-config cache_dir)
    export CCACHE_DIR PATH=/usr/lib/ccache:$PATH
fi

# make FOLDER: the packages end beside it.
make() {
    copy "$1"
    (cd "$1" && env -u CFLAGS -u CXXFLAGS -u LDFLAGS DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" \
        dpkg-buildpackage -b -us -uc) >"$1.log" 2>&1 || { tail -60 "$1.log"; return 1; }
}

make "$out/viaduct-$version" || { echo "packages: FAILED to build" && exit 1; }
rm -rf "${out:?}/viaduct-$version"
# For apt the folder is a source: deb [trusted=yes] file:FOLDER ./
(cd "$out" && dpkg-scanpackages -m . >Packages 2>/dev/null)
ls -l "$out"/*.deb

if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error,warning --suppress-tags bad-distribution-in-changes-file "$out"/*.changes ||
        { echo "packages: FAILED: lintian has found something" && exit 1; }
    echo "packages: lintian has found no error and no warning"
else
    echo "packages: lintian is SKIPPED: it is not installed"
fi

if ((twice)); then
    again=$out/again
    (umask 027 && LC_ALL=C TZ=UTC-14 && export LC_ALL TZ && make "$again/another-folder-of-viaduct") ||
        { echo "packages: FAILED to build a second time" && exit 1; }
    differ=0
    for package in "$out"/*.deb; do
        cmp "$package" "$again/${package##*/}" || differ=1
    done
    ((!differ)) || { echo "packages: FAILED: the second build differs ($again)" && exit 1; }
    rm -rf "$again"
    echo "packages: built twice, the same to the byte"
fi
echo "packages: $(find "$out" -maxdepth 1 -name '*.deb' | wc -l) in $out"
