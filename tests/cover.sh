#!/usr/bin/env bash
# Line coverage of all tests, by folder, in build/cover.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf build/cover
mkdir -p build/cover
make --no-print-directory -j"$(nproc)" B=build/cover CFLAGS='-O0 -g --coverage' LDFLAGS=--coverage tests
tests/run.sh build/cover || true
find build/cover/sim -name '*.gcda' -print0 | xargs -0 -I{} sh -c \
    'gcov -n -o "$(dirname "$1")" "$1" 2>/dev/null' sh {} >build/cover/gcov.txt
awk -F"[':%]" '
    /^File .*sim\// { file = $2; sub(/.*sim\//, "", file) }
    /^Lines executed/ && file { split($0, a, /[:% ]+/); n = a[5]; if (n > 0) { split(file, p, "/"); lines[p[1]] += n; hit[p[1]] += a[3] * n / 100 } file = "" }
    END { for (f in lines) { printf "%-10s %5.1f %% of %d lines\n", f, 100 * hit[f] / lines[f], lines[f]; L += lines[f]; H += hit[f] } printf "%-10s %5.1f %% of %d lines\n", "all", 100 * H / L, L }
' build/cover/gcov.txt | sort | tee build/cover/summary.txt
