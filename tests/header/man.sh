#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Do vipl.h, the export map and the manual pages speak of the same calls?   man.sh SOURCEDIR
# Prints one line per check and exits 1 if any failed. Pages are rendered too where go-md2man is there.
set -u

if [ $# -ne 1 ]; then
    echo "usage: $0 SOURCEDIR" >&2
    exit 2
fi
HEADER=$1/include/vipl.h MAP=$1/vipl/libvipl.map MAN=$1/man
WORK=$(mktemp -d) || exit 2
trap 'rm -rf "$WORK"' EXIT
trap 'exit 1' HUP INT TERM
failures=0

say() { # NAME FILE: an empty file means that all is well
    if [ -s "$2" ]; then
        failures=$((failures + 1))
        printf 'FAILED  %s\n' "$1"
        sed 's/^/        /' "$2"
    else
        printf 'ok      %s\n' "$1"
    fi
}

# One call a line, without comments, spaces as one, stars beside the name.
sed 's,/\*.*\*/,,' "$HEADER" | tr '\n' ' ' | sed 's/;/;\n/g' | tr -s ' ' |
    sed -n 's/.*\(\(VIP_RETURN\|VIP_PVOID\|void\) Vip[A-Z][A-Za-z]*([^;]*);\)/\1/p' | sed 's/\(\*\**\) / \1/g' |
    sort >"$WORK/calls"
sed 's/^[A-Za-z_]* \(Vip[A-Za-z]*\)(.*/\1/' "$WORK/calls" | sort >"$WORK/names"
[ "$(wc -l <"$WORK/names")" -eq 46 ] || echo "found $(wc -l <"$WORK/names") calls in $HEADER" >"$WORK/wrong"
say "vipl.h declares 46 calls" "$WORK/wrong"

sed -n 's/^ *\(Vip[A-Z][A-Za-z]*\);$/\1/p' "$MAP" | sort | diff "$WORK/names" - >"$WORK/wrong"
say "the export map lists the calls of vipl.h" "$WORK/wrong"

for page in "$MAN"/Vip[A-Z]*.3.md; do basename "$page" .3.md; done | sort | diff "$WORK/names" - >"$WORK/wrong"
say "every call has a page and every page a call" "$WORK/wrong"

: >"$WORK/wrong"
while IFS= read -r call; do
    name=$(echo "$call" | sed 's/^[A-Za-z_]* \(Vip[A-Za-z]*\)(.*/\1/')
    [ -f "$MAN/$name.3.md" ] || continue
    tr '\n' ' ' <"$MAN/$name.3.md" | tr -s ' ' | grep -qF "$call" || echo "$name.3.md: SYNOPSIS is not $call" >>"$WORK/wrong"
done <"$WORK/calls"
say "SYNOPSIS is the declaration of vipl.h" "$WORK/wrong"

: >"$WORK/wrong"
for page in "$MAN"/Vip[A-Z]*.3.md; do
    sections=$(sed -n 's/^# //p' "$page" | tr '\n' ',')
    [ "$sections" = "NAME,SYNOPSIS,DESCRIPTION,RETURN VALUE,THREADS,NOTES,EXAMPLES,SEE ALSO," ] ||
        echo "$(basename "$page"): $sections" >>"$WORK/wrong"
done
say "sections come in one order" "$WORK/wrong"

: >"$WORK/wrong"
sed -n '/^} VIP_RETURN/q; s/^    \(VIP_[A-Z_]*\) = [0-9]*,.*/\1/p' "$HEADER" | sort >"$WORK/codes"
[ "$(wc -l <"$WORK/codes")" -eq 17 ] || echo "found $(wc -l <"$WORK/codes") codes" >>"$WORK/wrong"
for page in "$MAN"/Vip[A-Z]*.3.md; do
    sed -n '/^# RETURN VALUE/,/^# THREADS/s/^\*\*\(VIP_[A-Z_]*\)\*\*$/\1/p' "$page" | sort >"$WORK/listed"
    comm -13 "$WORK/codes" "$WORK/listed" | sed "s/^/$(basename "$page"): no such code: /" >>"$WORK/wrong"
done
say "pages list codes that exist" "$WORK/wrong"

: >"$WORK/wrong"
cat "$MAN"/*.md | grep -o '\*\*Vip[A-Za-z]*\*\*(3)' | sed 's/\*\*\(.*\)\*\*(3)/\1/' | sort -u |
    while read -r name; do [ -f "$MAN/$name.3.md" ] || echo "$name"; done >"$WORK/wrong"
say "references to section 3 lead to a page" "$WORK/wrong"

if command -v go-md2man >/dev/null; then
    : >"$WORK/wrong"
    for page in "$MAN"/*.md; do
        go-md2man -in "$page" -out "$WORK/page" || echo "$(basename "$page"): go-md2man failed" >>"$WORK/wrong"
        grep -q '^\.SH ["]*NAME' "$WORK/page" || echo "$(basename "$page"): no NAME section" >>"$WORK/wrong"
        sed -n '/^\.SH/q; /^\.TH/p' "$WORK/page" | grep -q '^\.TH "*[A-Za-z0-9._-]*"* "*[1-8]"* ' || echo "$(basename "$page"): title line is wrong" >>"$WORK/wrong"
    done
    say "pages render" "$WORK/wrong"
else
    echo "--      go-md2man is not installed: pages not rendered"
fi
[ "$failures" -eq 0 ]
