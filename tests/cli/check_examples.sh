#!/usr/bin/env bash
# Every example runs: scripts as they are, sweeps and scenarios through their command. TAP.
# usage: tests/cli/check_examples.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
cd "$(dirname "$0")/../.." || exit 2
export RIDGE=$PWD/$build/ridge RIDGE_DATA=$PWD SHARED=$PWD/../shared
PATH=$PWD/$build:$PATH
n=0 failed=0
for example in examples/*.sh examples/*.yaml; do
    n=$((n + 1))
    case $example in
    *demo.sh) command=(bash "$example" "$build") ;;
    *.sh) command=(bash "$example") ;;
    *) if grep -q '^kind:' "$example"; then
        command=("$RIDGE" check "$example")
    else
        command=("$RIDGE" serve "$example" -q)
    fi ;;
    esac
    out=$("${command[@]}" 2>&1)
    rc=$?
    if [ $rc -eq 77 ]; then
        echo "ok $n - $example # SKIP $(tail -n 1 <<<"$out")"
    elif [ $rc -eq 0 ]; then
        echo "ok $n - $example"
    else
        echo "not ok $n - $example: exit $rc"
        tail -n 8 <<<"$out" | sed 's/^/# /'
        failed=1
    fi
done
echo "1..$n"
exit $failed
