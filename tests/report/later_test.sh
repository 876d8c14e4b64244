#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The builds that ./viaduct test does beside tests, with a cmake that only counts: they have no more than the processor time that is left
# over, do nothing while quiet tests run, a failed one is told with its log, and none outlives the run.  usage: later_test.sh
set -euo pipefail
viaduct=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")/viaduct
if ! command -v pkill >/dev/null || ! chrt --idle 0 true 2>/dev/null; then
    echo "SKIPPED: no pkill, or no class IDLE"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/build"
cp "$viaduct" "$work/viaduct"
cat >"$work/bin/cmake" <<'END'
#!/usr/bin/env bash
case "$*" in
    *--build*asan*) chrt --pid $$ >class; echo "linked" ;;
    *--build*tsan*) echo "an error of the compiler"; exit 1 ;;
    *--build*fuzz*) while sleep 0.05; do echo tick >>ticks; done ;;
esac
END
chmod +x "$work/bin/cmake"
# What is looked at: everything but the last part, which reads the command line.
sed -e '/^command=\${1:-}/,$d' -e '/^cd "/d' "$viaduct" >"$work/functions"
cat >"$work/run" <<'END'
set -euo pipefail
. ./functions
ends=ends
ticks() { wc -l 2>/dev/null <ticks || echo 0; }
await_more() { local was; was=$(ticks); for ((k = 0; k < 600; k++)); do (($(ticks) <= was)) || return 0; sleep 0.1; done; return 1; }
still() { local was; sleep 1; was=$(ticks); sleep 1; [[ $(ticks) == "$was" ]]; }
build_later asan tsan fuzz
built asan
! built tsan
[[ $failed == 1 && ${failed_names[0]} == "build: tsan" ]]
grep -q 'an error of the compiler' ends
await_more
quietly still
await_more
echo "$later" >session
END
cd "$work"
PATH=$work/bin:$PATH timeout 200 bash run >said 2>&1 || { cat said; echo "FAILED: see above"; exit 1; }
grep -q SCHED_IDLE class || { cat class; echo "FAILED: not of the class IDLE"; exit 1; }
for ((k = 0; k < 300; k++)); do
    ! pgrep --session "$(cat session)" >/dev/null || { sleep 0.1; continue; }
    echo "ok"
    exit 0
done
echo "FAILED: a build outlives the run"
exit 1
