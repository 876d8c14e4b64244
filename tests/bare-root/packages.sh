#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# packages.sh [--release NAME] [--cache FOLDER] [--made] FOLDER: Debian's packages from nothing, in bare roots below FOLDER (run.sh,
# which says what it needs). In the first they are made twice and compared, and lintian looks at them; --made: it has been done, and
# is left out. Into the second they are installed alone, and the tests of debian/tests run there; purged, they leave nothing.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
release=bookworm made=0 cache=()
while (($#)); do
    case $1 in
        --release) release=$2 && shift 2 ;;
        --cache) cache=(--cache "$2") && shift 2 ;;
        --made) made=1 && shift ;;
        --*) echo "packages.sh: unknown option $1" >&2 && exit 2 ;;
        *) break ;;
    esac
done
(($# == 1)) || { echo "usage: ${0##*/} [--release NAME] [--cache FOLDER] [--made] FOLDER" >&2 && exit 2; }
folder=$1
((made)) || "$here/run.sh" --release "$release" "${cache[@]}" --run './viaduct packages --twice' "$folder/build"
rm -rf --one-file-system "$folder/fresh"
"$here/run.sh" --release "$release" --put "$folder/build/opt/viaduct/build/packages" \
    --run tests/bare-root/install-packages.sh "$folder/fresh"
