#!/usr/bin/env bash
# Reference curves, all of them. Every row that has a tolerance must be within it (latency 2 % or 0.5 cycles
# up to 70 % of saturation, 8 % up to 90 %, accepted load 3 % past it). Where routing draws nothing on the
# way (meshes, rings, crossbars, free graphs) the replay sees the very packets of the reference, and every
# row must be the reference's to 0.05 %: its files have six digits, and a run may end a packet earlier. TAP.
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
cd "$(dirname "$0")/../.." || exit 2
curves=../shared/noc/curves n=0 bad=0
say() { # ok? name
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2" && bad=1; fi
}
if [ ! -d $curves ]; then
    echo "ok 1 - reference curves # SKIP no $curves"
    echo "1..1"
    exit 0
fi
for curve in "$curves"/*.csv; do
    name=$(basename "$curve" .csv) && rows=$build/tests/$name.csv
    "$build/ridge" noc --replay "$curve" --strict -f csv >"$rows" 2>"$rows.err"
    say $? "$name is within tolerance"
    grep -h -E 'OUTSIDE|ridge:' "$rows" "$rows.err" | sed 's/^/# /'
    case $name in
    ft* | t8_uni*) ;;
    *)
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            function off(column) { return $at[column] != "" && $at[column]^2 > 0.0005^2 }
            { rows++ }
            off("latency_deviation_ratio") || off("accepted_deviation_ratio") { print "# " $0; wrong = 1 }
            END { exit wrong || rows < 5 }' "$rows"
        say $? "$name is the reference, packet by packet"
        ;;
    esac
done
OMP_NUM_THREADS=1 "$build/ridge" noc --replay $curves/m4_uni_p1_v2_b4.csv --seeds 3 -f csv >"$build/tests/one.csv"
OMP_NUM_THREADS=3 "$build/ridge" noc --replay $curves/m4_uni_p1_v2_b4.csv --seeds 3 -f csv >"$build/tests/three.csv"
cmp -s "$build/tests/one.csv" "$build/tests/three.csv"
say $? "results do not depend on the number of threads"
echo "1..$n"
exit $bad
