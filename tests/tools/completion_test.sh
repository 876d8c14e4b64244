#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# completion_test.sh COMPLETION BINDIR: what Tab offers, tool by tool; every option offered is one of the tool's.
set -euo pipefail
# shellcheck source=utils/completion/viaduct.bash
source "$1"
PATH=$2:$PATH
failures=0

# offers TOOL WORD...: what is offered for the last word, in one line.
offers() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _viaduct "$1"
    echo "${COMPREPLY[*]}"
}

expect() { # PATTERN OFFER...
    local pattern=$1 got
    shift
    got=$(offers "$@")
    if [[ $got =~ $pattern ]]; then
        echo "ok      $* -> $got"
    else
        failures=$((failures + 1))
        echo "FAILED  $*: offered '$got', not $pattern"
    fi
}

expect '^--device --discriminator --doctor$' vipping --d
expect '^--reliability --report --rounds$' vipperf --r
expect '--doctor' vipinfo --
if command -v cmpiinfo >/dev/null; then
    expect '^--job --json$' cmpiinfo --j
    expect '^all$' cmpiinfo --job a
fi
expect '^delivery$' vipping -r de
expect '^read_bw read_lat$|^read_lat read_bw$' vipperf -t read
expect '^cq cq_wait$' vipperf --completion cq
expect '^paramnet0$' vipinfo param
expect '^paramnet0$' vipperf -d par
expect '^paramnet0$' vipinfo --doctor param
HOSTFILE=$(mktemp)
trap 'rm "$HOSTFILE"' EXIT
echo '192.0.2.7 param-of-another-host' >"$HOSTFILE"
expect '(^| )param-of-another-host( |$)' vipinfo --doctor param
expect '(^| )paramnet0( |$)' vipinfo --doctor param
expect '^paramnet0$' vipinfo param
expect '^$' vipperf --nonsense
expect '^record report$' viptrace re
expect '^attach$' viptrace a
expect '^--events$' viptrace record --e
expect '^--seconds$' viptrace attach --s
OWN=$$
expect "(^| )${OWN}( |\$)" viptrace attach ''
expect '^--html$' viptrace report --ht

for tool in vipcap vipinfo vipping vipperf vipstat; do
    for option in $(offers "$tool" -); do
        "$tool" --help | grep -qE -- "(^|[ ,])$option([ ,]|$)" || {
            failures=$((failures + 1))
            echo "FAILED  $tool does not know $option"
        }
    done
done
((failures == 0))
