#!/usr/bin/env bash
# The worked example of the on-chip network, and its reads of near L2 slices against a measured L2 rate:
# H100 PCIe, data sets of 2 to 33 MiB (114 SMs, the same slices and clock). 15 %, as most of the routers
# is assumed. TAP.
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
cd "$(dirname "$0")/../.." || exit 2
out=$build/tests/on-chip-network
measured=../shared/noc/gpu_l2_cache_bw.csv n=0 bad=0
say() { # ok? name
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2" && bad=1; fi
}
examples/40-on-chip-network.sh "$build" "$out" >"$out.txt" 2>&1
say $? "the example runs"
[ "$(grep -cE 'TB/s +[0-9.]+% +[0-9]+% +[0-9]+$' "$out.txt")" -eq 6 ]
say $? "it gives six operators a rate, a share and a busiest link"
[ "$(find "$out" -name '*.svg' | wc -l)" -eq 6 ]
say $? "and a heat map each"
near=$(sed -nE 's/^  KV read, near copies +([0-9.]+) TB\/s.*/\1/p' "$out.txt")
far=$(sed -nE 's/^  KV read, slices of both partitions +([0-9.]+) TB\/s.*/\1/p' "$out.txt")
bound=$(sed -nE 's/^  slice to sm +at most ([0-9.]+) TB\/s.*/\1/p' "$out.txt")
awk -v n="$near" -v f="$far" -v b="$bound" 'BEGIN { exit !(f < n && n < b && f > 3.35) }'
say $? "reads stay below the wires, near ones above far ones, both above the memory's rate"
if [ -e $measured ]; then
    awk -F, -v n="$near" '$1 == "h100_pcie" && $3 >= 2048 && $3 <= 33792 { sum += $5; rows++ }
        END { rate = sum / rows / 1000; exit !(rows > 10 && n / rate > 0.85 && n / rate < 1.15) }' $measured
    say $? "near reads are within 15 % of the measured L2 rate"
else
    n=$((n + 1))
    echo "ok $n - near reads are within 15 % of the measured L2 rate # SKIP no $measured"
fi
echo "1..$n"
exit $bad
