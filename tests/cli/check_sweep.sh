#!/usr/bin/env bash
# A sweep gives the same bytes whatever happens to it: kills, shards, threads. TAP.
# usage: tests/cli/check_sweep.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/../.." || exit 2
ridge=$PWD/${1:-build}/ridge
export RIDGE_DATA=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0 failed=0
is() { # what, status
    n=$((n + 1))
    if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; failed=1; fi
}
cat >"$work/grid.yaml" <<'Y'
kind: sweep
fixed: {hw: hgx-h200, model: llama-3.1-8b, output-tokens: 128}
grid:
  hw.memory.hbm.bandwidth: [x0.5, x1, x1.5, 6 TB/s]
  tp: [1, 2, 3, 4, 8, 16]
  weight-type: [bf16, fp8]
  batch: [1, 2, 4, 8, 16, 32, 64, 128]
  context: [512, 1024, 2048, 4096, 8192]
Y
"$ridge" sweep "$work/grid.yaml" -q -o "$work/whole.csv"
is "a sweep ends" $?
[ "$(grep -vc '^[#c]' "$work/whole.csv")" -eq 1920 ]
is "every cell has a row" $?
awk -F'"' '{ line = ""; for (i = 1; i <= NF; i += 2) line = line $i; print gsub(",", "", line) }' <(tail -n +2 "$work/whole.csv") | sort -u | wc -l | grep -qx 1
is "every row has the same number of fields" $?
"$ridge" sweep "$work/grid.yaml" -q | cmp -s - <(tail -n +2 "$work/whole.csv")
is "stdout has the same rows" $?

kills=0
for delay in 0.01 0.02 0.03 0.05 0.08 0.13; do
    "$ridge" sweep "$work/grid.yaml" -q -o "$work/killed.csv" &
    pid=$!
    sleep $delay
    kill -9 $pid 2>/dev/null && [ ! -e "$work/killed.csv" ] && kills=$((kills + 1))
    wait $pid 2>/dev/null
done
part=$work/killed.csv.shard-0-of-1.part
[ -e "$part" ] && printf '1919 deadbeef 1919,x1' >>"$part"
"$ridge" sweep "$work/grid.yaml" -q -o "$work/killed.csv"
cmp -s "$work/whole.csv" "$work/killed.csv"
is "killed $kills times and resumed over a broken line: the same bytes" $?
[ ! -e "$part" ]
is "the journal is gone when the output is there" $?

for i in 2 0 1; do "$ridge" sweep "$work/grid.yaml" -q -o "$work/shards.csv" --shard $i/3; done
cmp -s "$work/whole.csv" "$work/shards.csv"
is "three shards in any order: the same bytes" $?
OMP_NUM_THREADS=1 "$ridge" sweep "$work/grid.yaml" -q -o "$work/one.csv"
cmp -s "$work/whole.csv" "$work/one.csv"
is "one thread: the same bytes" $?
for i in 0 1 2 3; do
    OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=4 "$ridge" sweep "$work/grid.yaml" -q -o "$work/mpi.csv" &
done
wait
cmp -s "$work/whole.csv" "$work/mpi.csv"
is "four processes at once, as mpirun starts them: the same bytes" $?

"$ridge" sweep "$work/grid.yaml" -q -o "$work/other.csv" --shard 0/2
sed -i 's/x0.5/x0.6/' "$work/grid.yaml"
"$ridge" sweep "$work/grid.yaml" -q -o "$work/other.csv" --shard 0/2 2>"$work/err"
[ $? -eq 2 ] && grep -q 'belongs to another grid' "$work/err"
is "a journal of another grid is refused" $?
echo "1..$n"
exit $failed
