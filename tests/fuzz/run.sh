#!/usr/bin/env bash
# Fuzz every parser with clang's libFuzzer under address and undefined-behaviour sanitizers.
# usage: tests/fuzz/run.sh SECONDS_EACH [NAME]
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
seconds=${1:-30}
only=${2:-}
cd "$(dirname "$0")/../.."
command -v clang >/dev/null || { echo "fuzz: needs clang and its runtime (clang, libclang-rt-14-dev)" >&2; exit 2; }
make --no-print-directory CC=clang SANITIZE=address,undefined,fuzzer-no-link build/san/libridge.a
mapfile -t libs < <(pkg-config --libs gsl yaml-0.1 jansson sqlite3 libmd | tr ' ' '\n' | grep .)
mkdir -p build/fuzz
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    [ "$name" = fuzz_main ] && continue
    [ -n "$only" ] && [ "$name" != "$only" ] && continue
    clang -std=c11 -D_POSIX_C_SOURCE=200809L -g -O1 -Isim -fsanitize=address,undefined,fuzzer \
        -fopenmp "$source" build/san/libridge.a "${libs[@]}" -lm -o "build/fuzz/$name"
    mkdir -p "build/fuzz/corpus/$name"
    echo "fuzz: $name for $seconds s"
    "build/fuzz/$name" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="build/fuzz/$name-" -print_final_stats=0 -verbosity=0 \
        "build/fuzz/corpus/$name" "tests/fuzz/corpus/${name#fuzz_}"
done
