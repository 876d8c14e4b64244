#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# mixed.sh [--cache FOLDER] [--repeat N] FOLDER [CONFORMANCE-OPTION...]: the conformance suite, and each legacy program N times
# (20 if not told), between programs of 32 bits, and between those and programs of 64, which share an agent and connections. The
# former are built in an i386 root in FOLDER (run.sh), the latter are those of build/release here; the root's libraries are put
# where programs look for them, in a mount namespace of our own. Needs what run.sh needs; SKIPPED, with the reason and 77, where
# that is not to be had.
set -euo pipefail
if [[ ${1:-} == --child ]]; then
    # --child PROGRAM OWN ARGUMENT...: in place of a child of its own kind, a test starts PROGRAM.
    program=$2
    shift 3
    exec "$program" "$@"
fi
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
source=$(git -C "$here" rev-parse --show-toplevel)

programs=(pingpong many2one alltoall rdmamove threads ring enum watch notify pages sessions)
arguments=("$@") cache=() repeat=20
while [[ ${1:-} == --* ]]; do
    case $1 in
        --cache) cache=(--cache "$2") ;;
        --repeat) repeat=$2 ;;
        *) break ;;
    esac
    shift 2
done
(($#)) || { echo "usage: ${0##*/} [--cache FOLDER] [--repeat N] FOLDER [CONFORMANCE-OPTION...]" >&2 && exit 2; }
if [[ -z ${MIXED_MOUNTS:-} ]]; then
    targets="viaduct_runtime viaduct_conformance ${programs[*]/#/via_}"
    # shellcheck disable=SC2086 # targets are words
    "$source/viaduct" build release $targets
    "$here/run.sh" --arch i386 "${cache[@]}" --run "./viaduct build release $targets" "$1"
    MIXED_MOUNTS=own exec unshare --mount --propagation private "$here/${0##*/}" "${arguments[@]}"
fi
root=$(readlink -f "$1")
shift

# Beside the machine's own libraries, as Debian lays out those of a second kind of processor.
extra=$(mktemp -d)
trap 'rm -rf "$extra"' EXIT
ln -s i386-linux-gnu/ld-linux.so.2 "$extra/ld-linux.so.2"
mkdir "$extra/i386-linux-gnu"
mount -t overlay -o "lowerdir=$extra:/usr/lib" overlay /usr/lib
mount --bind "$root/usr/lib/i386-linux-gnu" /usr/lib/i386-linux-gnu

narrow=$root/opt/viaduct/build/release wide=$source/build/release status=0
export LD_LIBRARY_PATH=$narrow/lib:$narrow/lib/i386-linux-gnu
suite=tests/conformance/viaduct_conformance
for pair in "$narrow $narrow" "$narrow $wide" "$wide $narrow"; do
    read -r tests child <<<"$pair"
    name="$(file -bL "$tests/$suite" | cut -d' ' -f2) with $(file -bL "$child/$suite" | cut -d' ' -f2)"
    echo "== mixed: $name"
    VIADUCT_AGENT="@viaduct-mixed-$$-$RANDOM" "$tests/$suite" \
        --child-command "$here/${0##*/} --child $child/$suite" "$@" ||
        { status=1 && echo "mixed: conformance, $name FAILED"; }
    VIADUCT_AGENT="@viaduct-mixed-$$-$RANDOM" python3 "$source/tests/legacy/run.py" --bin "$tests/tests/legacy" \
        --client-bin "$child/tests/legacy" --program all --repeat "$repeat" ||
        { status=1 && echo "mixed: legacy, $name FAILED"; }
done
((status == 0)) && echo "mixed: passed"
exit $status
