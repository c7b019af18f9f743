#!/usr/bin/env bash
# Every file of tests/bad/guard has one mistake; expect.txt says what `ridge guard` must answer to it, as
# "FILE: MESSAGE". base-* are baselines, rules-* rules, run-* runs. All exit 2.
# usage: tests/bad/check_guard.sh [BUILD]     UPDATE=1 rewrites expect.txt
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/../.." || exit 2
ridge=${RIDGE:-$PWD/${1:-build}/ridge}
good=tests/fuzz/corpus/probe/two_kernels.json
count=0 failed=0
[ -n "${UPDATE:-}" ] && : >tests/bad/guard/expect.txt
for file in tests/bad/guard/{base,rules,run}-*; do
    name=${file##*/}
    case $name in
    base-*) output=$("$ridge" guard $good --baseline "$file" 2>&1 >/dev/null) ;;
    rules-*) output=$("$ridge" guard $good --rules "$file" 2>&1 >/dev/null) ;;
    *) output=$("$ridge" guard "$file" --baseline $good 2>&1 >/dev/null) ;;
    esac
    got="$name: exit $?: ${output//tests\/bad\/guard\//}"
    [ -n "${UPDATE:-}" ] && echo "$got" >>tests/bad/guard/expect.txt
    count=$((count + 1))
    if grep -qxF -- "$got" tests/bad/guard/expect.txt && [[ $got == "$name: exit 2: ridge: "* ]]; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        echo "# got $got"
        failed=$((failed + 1))
    fi
done
echo "1..$count"
[ "$failed" -eq 0 ]
