#!/usr/bin/env bash
# Reference curves: every judged row of these curves must be within its tolerance (latency 2 % or 0.5
# cycles up to 70 % of saturation, 8 % up to 90 %, accepted load 3 % past it). One curve of each kind,
# with few seeds; `ridge noc --replay` runs them all. Left to it are loads at the very edge of saturation
# and rings that collapse at a random time: one run says little there.
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
cd "$(dirname "$0")/../.." || exit 2
curves=../shared/noc/curves n=0 bad=0
for curve in m4_uni_p1_v2_b4 m4_tor_p4_v2_b4 m8_uni_p1_v4_b8_P4 m8_tra_p4_v4_b8_P2 m8_uni_p1_v2_b8 \
    t8_uni_p1_v2_b8 r16_nei_p1_v2_b8 ft64_uni_p4_v2_b8 x16_uni_p1_v4_b8 x20_uni_p1_v4_b8 \
    h32_memsm_p5_v4_b8 h132_smmem_p1_v4_b8; do
    n=$((n + 1))
    if [ ! -e "$curves/$curve.csv" ]; then
        echo "ok $n - $curve # SKIP no $curves"
    elif "$build/ridge" noc --replay "$curves/$curve.csv" --seeds 3 --strict >"$build/tests/$curve.txt" 2>&1; then
        echo "ok $n - $curve"
    else
        echo "not ok $n - $curve"
        grep -E 'OUTSIDE|ridge:' "$build/tests/$curve.txt" | sed 's/^/# /'
        bad=1
    fi
done
n=$((n + 1))
if [ -e $curves/m4_uni_p1_v2_b4.csv ]; then
    OMP_NUM_THREADS=1 "$build/ridge" noc --replay $curves/m4_uni_p1_v2_b4.csv -f csv >"$build/tests/one.csv"
    OMP_NUM_THREADS=3 "$build/ridge" noc --replay $curves/m4_uni_p1_v2_b4.csv -f csv >"$build/tests/three.csv"
    if cmp -s "$build/tests/one.csv" "$build/tests/three.csv"; then
        echo "ok $n - results do not depend on the number of threads"
    else
        echo "not ok $n - results do not depend on the number of threads"
        bad=1
    fi
else
    echo "ok $n - results do not depend on the number of threads # SKIP no $curves"
fi
echo "1..$n"
exit $bad
