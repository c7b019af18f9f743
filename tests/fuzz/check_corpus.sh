#!/usr/bin/env bash
# Every parser against its corpus of real and hostile files. TAP.
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
cd "$(dirname "$0")/../.." || exit 2
n=0
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    [ "$name" = fuzz_main ] && continue
    n=$((n + 1))
    corpus=tests/fuzz/corpus/${name#fuzz_}
    if out=$("$build/tests/fuzz/$name" "$corpus" 2>&1); then
        echo "ok $n - $name takes its corpus ($(grep -c '^ok' <<<"$out") files)"
    else
        echo "not ok $n - $name over $corpus"
        tail -n 8 <<<"$out" | sed 's/^/# /'
    fi
done
echo "1..$n"
