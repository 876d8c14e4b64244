#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# units.sh FOLDER: what the system services may do, by systemd's own measure (0 nothing, 10 everything). FOLDER has the units as
# they are installed. What keeps the measure low must let them work: filter_test.py runs the agent under the filter.
set -euo pipefail
folder=$1
most=24  # tenths

if ! systemd-analyze security --help 2>/dev/null | grep -q -- --offline; then
    echo "SKIPPED: no systemd-analyze that judges files (package systemd)"
    exit 77
fi
failed=0
for unit in vipkad viaduct-tune; do
    line=$(systemd-analyze security --offline=true "$folder/$unit.service" | tail -n 1)
    if ! [[ $line =~ ([0-9]+)\.([0-9]) ]]; then
        echo "FAILED: $unit.service: no measure in \"$line\""
        failed=1
    elif ((BASH_REMATCH[1] * 10 + BASH_REMATCH[2] > most)); then
        echo "FAILED: $unit.service: exposure ${BASH_REMATCH[0]} is not below 2.5"
        failed=1
    else
        echo "$unit.service: exposure ${BASH_REMATCH[0]}"
    fi
done
exit $failed
