#!/usr/bin/env bash
# Every benchmark once: rates in CPU seconds of this machine, and instruction counts by callgrind, which
# do not depend on what else the machine does. Nothing here is a test.
# usage: tests/bench/run.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -eu
build=${1:-build}
cd "$(dirname "$0")/../.."
bench=$build/tests/bench
export RIDGE_DATA=$PWD
say() { printf '\n== %s\n' "$*"; }

say 'operator predictions per CPU second'
"$bench/bench_kernel" h200-sxm 2
say 'operators of a pass, filled'
"$bench/bench_pass" llama-3.1-70b 20000
say 'step times'
"$bench/bench_step" hgx-h200 llama-3.1-70b 20000
say 'scheduler steps per CPU second, batch 64'
"$bench/bench_serve" 64 20000
say 'guard: alarms on equal runs, slowdowns found'
"$bench/bench_guard" 10
if command -v valgrind >/dev/null; then
    say 'instructions of one estimate'
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$build/ridge" estimate --hw h200-sxm \
        --model llama-3.1-8b --batch 32 2>&1 >/dev/null | sed -n 's/.*Collected : //p'
    say 'on-chip network: instructions per flit-hop'
    tests/bench/noc.sh "$build"
else
    echo 'bench: valgrind is not installed; instruction counts left out'
fi
