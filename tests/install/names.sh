#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# names.sh LIBRARY MAP INCLUDE: the library exports each name of its version script, with that version, and nothing else;
# of the extensions (Vipx..., a pattern in the script) exactly those that a public header declares.
set -euo pipefail
library=$1 map=$2 include=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# "Name@@VERSION", from the script: a version node opens with "VERSION {", names end in ";" until "local:".
awk '
    /^[A-Z_0-9.]+ *\{/ { version = $1; exported = 0; next }
    /global:/          { exported = 1; next }
    /local:|^ *\}/     { exported = 0; next }
    exported && match($0, /[A-Za-z_0-9]+;/) { print substr($0, RSTART, RLENGTH - 1) "@@" version }
' "$map" >"$work/in-map"
for header in "$include/vipl.h" "$include/viaduct/ext.h"; do
    [[ ! -e $header ]] || { grep -oE '\bVipx[A-Za-z0-9]+ *\(' "$header" || true; }
done | sed 's/ *($/@@VIADUCT_1.0/' | sort -u "$work/in-map" - >"$work/promised"
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort >"$work/exported"

calls=$(grep -c '@@VIPL_1\.0$' "$work/promised")
((calls == 41)) || { echo "the map names $calls calls of VIPL 1.0, not 41"; exit 1; }
diff -u --label promised --label exported "$work/promised" "$work/exported"
echo "$(wc -l <"$work/exported") names exported, all versioned, none more than documented"
