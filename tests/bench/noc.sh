#!/usr/bin/env bash
# Instructions per flit-hop of the cycle engine at 10, 50 and 90 % of saturation, meshes of 8 x 8 and
# 16 x 16, 4 VCs, one-flit packets, by callgrind. usage: tests/bench/noc.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -eu
bench=${1:-build}/tests/bench/bench_noc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '%-8s %6s %10s %22s %12s\n' mesh load flit-hops 'instructions/flit-hop' 'memory MiB'
run() { # k load cycles
    valgrind --tool=callgrind --callgrind-out-file="$work/out" --toggle-collect=rg_noc_sim_step \
        "$bench" "$1" "$2" "$3" >"$work/text" 2>"$work/err"
    local hops bytes count
    hops=$(awk '{ print $2 }' "$work/text")
    bytes=$(awk '{ print $6 }' "$work/text")
    count=$(sed -nE 's/.*Collected : ([0-9]+).*/\1/p' "$work/err")
    awk -v k="$1" -v l="$2" -v h="$hops" -v c="$count" -v b="$bytes" \
        'BEGIN { printf "%-8s %6s %10d %22.0f %12.2f\n", k "x" k, l, h, c / h, b / 1048576 }'
}
for load in 0.042 0.21 0.378; do run 8 $load 3000; done
for load in 0.022 0.11 0.198; do run 16 $load 1000; done
