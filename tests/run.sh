#!/usr/bin/env bash
# Run every test of a build folder and close with "N passed, N failed[, N skipped]".
# A test script under tests/*/ prints TAP lines ("ok", "not ok", "# SKIP") like cmocka's TAP output.
# usage: tests/run.sh BUILD [PATTERN]
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
pattern=${2:-}
cd "$(dirname "$0")/.." || exit 2
export RIDGE="$PWD/$build/ridge" RIDGE_BUILD="$PWD/$build" CMOCKA_MESSAGE_OUTPUT=TAP LC_ALL=C.UTF-8
passed=0 failed=0 skipped=0
log=$build/tests/log
mkdir -p "$log"

run_one() { # name command...
    local name=$1 out rc ok bad skip
    shift
    out=$log/$(tr '/ ' '__' <<<"$name").tap
    "$@" >"$out" 2>"$out.err"
    rc=$?
    # cmocka writes a skipped test as "not ok 1 # SKIP name"
    sed -i -E 's/^not ok ([0-9]+) # SKIP (.*)/ok \1 - \2 # SKIP/' "$out"
    skip=$(grep -cE '^ok .*# ?(SKIP|skip)' "$out")
    ok=$(($(grep -cE '^ok\b' "$out") - skip))
    bad=$(grep -cE '^not ok\b' "$out")
    # A crash, or a run without any result, is a failure of its own.
    if { [ "$rc" -ne 0 ] && [ "$bad" -eq 0 ]; } || [ $((ok + bad + skip)) -eq 0 ]; then
        bad=$((bad + 1))
        echo "FAILED $name: exit $rc, $ok passed before it"
        tail -n 20 "$out.err"
    elif [ "$bad" -gt 0 ]; then
        echo "FAILED $name:"
        grep -E '^not ok\b' -A 12 "$out" | head -60
        tail -n 20 "$out.err"
    fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
}

for source in tests/unit/*/test_*.c; do
    [ -e "$source" ] || continue
    test=$build/${source%.c}
    case $test in *"$pattern"*) run_one "${source%.c}" "$test" ;; esac
done
for script in tests/cli/*.t; do
    [ -e "$script" ] || continue
    case $script in *"$pattern"*) run_one "$script" tests/cli/run.sh "$script" ;; esac
done
for script in tests/*/check*.sh; do
    [ -e "$script" ] || continue
    case $script in *"$pattern"*) run_one "$script" bash "$script" "$build" ;; esac
done

if [ "$skipped" -gt 0 ]; then
    grep -hE '^ok .*# ?(SKIP|skip)' "$log"/*.tap | sed 's/^ok [0-9]* *-* */skipped: /' | sort | uniq -c | head -40
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ]
