#!/usr/bin/env bash
# The one command for GPU machines, on the CPU emulation: every step leaves its file.
# usage: tests/gpu/check_validate.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -u
build=$(realpath "${1:-build}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/build"
ln -s "$build/ridge" "$build/ridge-probe" "$build/kernels" "$work/build/"
count=0
report() {
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else
        echo "not ok $count - $2"
        tail -8 "$work/out" | sed 's/^/# /'
    fi
}
tests/gpu/validate.sh "$work/build" --cuda-lib "$build/kernels/emu" --extent small --samples 3 \
    --least-us 0 --counters no --base h200-sxm >"$work/out" 2>&1
report $? "calibrate, check, run, targets and validate on the emulation"
for file in env.txt measured.yaml check.tap run.json run.txt targets.txt attention.json tables/generation_attention.csv\
    tables/context_attention.csv validate-generation_attention.text; do
    [ -s "$work/build/gpu/$file" ]
    report $? "it leaves $file"
done
"$build/ridge" check "$work/build/gpu/measured.yaml" >"$work/out" 2>&1
report $? "the measured hardware file passes ridge check"

# A record whose figures are known: 80 % of the plain read is not 90 %, 2 % of traffic is within 3 %.
row() { # kernel variant bytes_per_s dram_bytes extra-problem
    printf '{"kernel":"%s","variant":"%s","dtype":"bfloat16","cache":"cold","model_bytes":1e9,"bytes_per_s":%s,"flops_per_s":null,"dram_bytes":%s,"problem":{%s}}' "$@"
}
record() { printf '{"schema":"ridge.probe/1","device":{"name":"made up","l2_bytes":5e7},"kernels":[%s]}' "$(IFS=,; echo "$*")"; }
read_row=$(row stream read_4 4.0e12 null '"bytes":1')
record "$read_row" "$(row kv_read paged 3.7e12 1.02e9 '"page":16')" >"$work/good.json"
record "$read_row" "$(row kv_read paged 3.2e12 1.02e9 '"page":16')" >"$work/slow.json"
record "$read_row" "$(row kv_read paged 3.7e12 1.05e9 '"page":16')" >"$work/wasteful.json"
record "$read_row" "$(row kv_read paged 3.2e12 1.02e9 '"page":4')" >"$work/small.json"
"$build/ridge-probe" targets "$work/good.json" >"$work/out" 2>&1
report $? "92.5 % of the plain read and 2 % more traffic reach the targets"
"$build/ridge-probe" targets "$work/slow.json" >"$work/out" 2>&1
[ $? -eq 1 ] && grep -q 'KV read.* 80.0%  MISSED' "$work/out"
report $? "80 % of the plain read is missed, exit 1"
"$build/ridge-probe" targets "$work/wasteful.json" >"$work/out" 2>&1
[ $? -eq 1 ] && grep -q 'DRAM.* 5.0%  MISSED' "$work/out"
report $? "5 % more traffic than the model is missed"
"$build/ridge-probe" targets "$work/small.json" >"$work/out" 2>&1
report $? "pages under 16 tokens have no target"
record "$read_row" "$(row kv_read paged 3.2e12 1.02e9 '"page":16')" "$(row kv_read bulk 3.7e12 1.02e9 '"page":16')" >"$work/two.json"
"$build/ridge-probe" targets "$work/two.json" >"$work/out" 2>&1
report $? "the better of two kernels for one problem counts"
echo '{"schema": "other/1"}' >"$work/other.json"
"$build/ridge-probe" targets "$work/other.json" >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q 'other.json:1:1: another schema' "$work/out"
report $? "a file that is no run record is refused"
echo "1..$count"
