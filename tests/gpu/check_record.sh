#!/usr/bin/env bash
# Run records and measured tables that ridge-probe writes, on the CPU emulation: against the schema,
# their own arithmetic, and the readers of ridge.
# usage: tests/gpu/check_record.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
probe=$build/ridge-probe
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
report() {
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else
        echo "not ok $count - $2"
        sed 's/^/# /' "$work/out" | head -8
    fi
}
: >"$work/out"
families=(stream tensor launch copy kv_read decode decode_mla gemm prefill allreduce allreduce_virtual)
"$probe" run "${families[@]}" --extent small --samples 4 --least-us 0 --cuda-lib "$build/kernels/emu" \
    --output "$work/run.json" --csv "$work/csv" >"$work/out" 2>&1
report $? "a run of ${#families[@]} kernels"
# shellcheck disable=SC2046
${CC:-cc} -std=c11 $(pkg-config --cflags jansson) tests/gpu/schema.c -o "$work/schema" \
    $(pkg-config --libs jansson) 2>"$work/out"
report $? "the schema checker compiles"
"$work/schema" kernels/run-record.schema.json "$work/run.json" >"$work/out" 2>&1
report $? "the record fits kernels/run-record.schema.json"
sed 's/"median_us"/"median_s"/' "$work/run.json" >"$work/bad.json"
! "$work/schema" kernels/run-record.schema.json "$work/bad.json" >"$work/out" 2>&1
report $? "a record with a renamed key does not"
grep -q '"emulated": true' "$work/run.json"
report $? "the record says that it is an emulation"
grep -q 'virtual ranks on one GPU: no interconnect is measured' "$work/run.json"
report $? "virtual ranks are labelled"
# the order of the figures, and rates that are work over time
awk -F'[:,]' '/"median_us"/ { m = $2 } /"q1_us"/ { q1 = $2 } /"q3_us"/ { q3 = $2 } /"flops": / { f = $2 }
    /"min_us"/ { if (!($2 <= q1 && q1 <= m && m <= q3)) { bad = 1; print "order", $2, q1, m, q3 } }
    /"flops_per_s"/ && $2 !~ /null/ { n++; r = $2 * m / 1e6; if (r < f * 0.999999 || r > f * 1.000001) { bad = 1; print "rate", r, f } }
    END { exit bad || n < 8 }' "$work/run.json" >"$work/out"
report $? "min <= q1 <= median <= q3, and flop/s x median is flop"
awk '/"reason": / && /GPUs wanted/ { found = 1 } END { exit !found }' "$work/run.json"
report $? "problems that this machine cannot run are listed with the reason"
head -2 "$work/csv/gemm.csv" | tail -1 | grep -q '^kernel,dtype,m,n,k,time_us$' &&
    head -2 "$work/csv/generation_attention.csv" | tail -1 |
    grep -q '^kernel,q_dtype,kv_dtype,batch,kv_len,heads,kv_heads,head_dim,window,time_us$'
report $? "tables have the columns of measured tables"
[ ! -e "$work/csv/custom_allreduce.csv" ]
report $? "virtual ranks go into no table of measured all-reduce times"
! grep -q 'int4' "$work"/csv/*.csv
report $? "types that measured tables have no name for stay out of them"
"$probe" run launch --variant graph --extent small --samples 3 --least-us 0 --counters no \
    --cuda-lib "$build/kernels/emu" --output "$work/none/run.json" >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q 'none/run.json' "$work/out"
report $? "a record that cannot be written is an error"
"$probe" run gemm --set m=24 --set n=16 --set k=32 --variant mma --extent small --samples 3 --least-us 0 \
    --counters no --cuda-lib "$build/kernels/emu" 2>/dev/null | grep -q '"m": 24'
report $? "--set changes a problem"
RIDGE_EMU_FAULT=rg_gemm_bfloat16_64 "$probe" run launch gemm --extent small --samples 3 --least-us 0 \
    --counters no --cuda-lib "$build/kernels/emu" --output "$work/fault.json" >"$work/out" 2>&1
[ $? -eq 3 ] && grep -q '"name": "launch_graph"' "$work/fault.json" && grep -q '"reason": "rg_gemm_bfloat16_64 failed' "$work/fault.json"
report $? "a kernel that faults ends the run with exit 3; what was measured before is kept"
RIDGE_EMU_FAIL=cuStreamBeginCapture_v2=801 "$probe" run launch kv_read --extent small --samples 3 --least-us 0 \
    --counters no --cuda-lib "$build/kernels/emu" --output "$work/plain.json" >"$work/out" 2>&1
report $? "a driver that cannot capture still gives times"
! grep -q '"graph": true' "$work/plain.json" && grep -A9 '"name": "launch_graph"' "$work/plain.json" | grep -q 'cuStreamBeginCapture'
report $? "the record says so, and the cost of a graph node is not made up"
if "$build/ridge" guard --help >/dev/null 2>&1; then
    "$build/ridge" guard "$work/run.json" --baseline "$work/run.json" >"$work/out" 2>&1
    report $? "ridge guard takes the record as run and as baseline"
fi
echo "1..$count"
