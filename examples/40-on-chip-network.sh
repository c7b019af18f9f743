#!/usr/bin/env bash
# What share of an accelerator's inside bandwidth can its on-chip network deliver? An H100-like network
# (132 SMs, 80 L2 slices, memory and NVLink ports; hw/noc/h100-like.yaml) under the traffic of decode
# attention (KV read), a matrix product, and all-reduces among the SMs.
# usage: examples/40-on-chip-network.sh [BUILD [OUT]]     OUT gets a heat map of each (SVG)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
ridge=${1:-build}/ridge out=${2:-}
[ -n "$out" ] && mkdir -p "$out"

echo "Ports and wires (closed form):"
for way in "slice sm" "sm slice" "mem slice" "nvlink slice"; do
    read -r from to <<<"$way"
    rate=$("$ridge" noc h100-like --from "$from" --to "$to" --closed --links 0 |
        sed -nE 's/.*all injecting nodes together +//p')
    printf '  %-18s at most %s\n' "$from to $to" "$rate"
done
echo
echo "Operators (simulated, no time for arithmetic):"
printf '  %-42s %12s  %10s  %8s  %s\n' traffic payload 'of inside' busiest cycles
row() { # name, then options
    local name=$1 text heat=()
    shift
    [ -n "$out" ] && heat=(--heat "$out/noc-$(tr -cs 'a-z0-9' - <<<"${name,,}" | sed 's/-$//').svg")
    text=$("$ridge" noc h100-like "$@" "${heat[@]}" --links 1)
    value() { sed -nE "s/^  $1 +([0-9.]+( [A-Z]*B\/s)?)$/\1/p" <<<"$text"; }
    printf '  %-42s %12s  %9.1f%%  %7.0f%%  %s\n' "$name" "$(value 'payload rate')" \
        "$(awk -v x="$(value 'payload as a share of that')" 'BEGIN { print 100 * x }')" \
        "$(awk -v x="$(value 'utilisation of the busiest link')" 'BEGIN { print 100 * x }')" "$(value cycles)"
}
row "KV read, slices of both partitions" --operator kv-read --bytes '16 MiB'
row "KV read, near copies" --operator kv-read --bytes '16 MiB' --near
row "GEMM 2048 x 2048 x 256, both partitions" --operator gemm --shape 2048x2048x256
row "GEMM 2048 x 2048 x 256, near copies" --operator gemm --shape 2048x2048x256 --near
row "all-reduce of 132 KiB per SM, ring" --operator allreduce --bytes '132 KiB'
row "all-reduce of 32 KiB per SM, in the slices" --operator allreduce-l2 --bytes '32 KiB'
