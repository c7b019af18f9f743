#!/usr/bin/env bash
# Counting and tracing against a stand-in CUPTI: the order of the calls, what a record gets, and each
# way in which CUPTI refuses, with its own words; clocks and throttling from a stand-in NVML.
# Needs the toolkit's CUPTI headers.
# usage: tests/gpu/check_counters.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -u
build=$(realpath "${1:-build}")
toolkit=$(cut -d' ' -f1 "$build/kernels/toolkit" 2>/dev/null)
if [ ! -e "$toolkit/include/cupti_range_profiler.h" ]; then
    echo "ok 1 - counting # SKIP no CUPTI headers, so this ridge-probe cannot count"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}
$cc -std=c11 -fPIC -shared -Ikernels/compat -isystem "$toolkit/include" tests/gpu/fake_cupti.c \
    -o "$work/libcupti.so.13" &&
    $cc -std=c11 -fPIC -shared tests/gpu/fake_nvml.c -o "$work/libnvidia-ml.so.1" ||
    { echo "not ok 1 - stand-ins do not compile"; exit 1; }
ln -s "$build/kernels/emu/libcuda.so.1" "$work/"
export RIDGE_EMU_CUPTI=1
count=0
report() {
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else
        echo "not ok $count - $2"
        tail -5 "$work/out" | sed 's/^/# /'
    fi
}
run() { # env settings...
    env "$@" "$build/ridge-probe" run kv_read --extent small --samples 3 --least-us 0 \
        --cuda-lib "$work" --images "$work/images" --output "$work/run.json" >"$work/out" 2>&1
}
# says NAME PATTERN settings...: the run succeeds with times only, and says why
says() {
    local name=$1 pattern=$2
    shift 2
    run "$@" && grep -q '"median_us"' "$work/run.json" &&
        grep -E '"(counters|activity)_missing"' "$work/run.json" >"$work/out" && grep -qE "$pattern" "$work/out"
    report $? "$name"
}

rm -f "$work/log"
run "RIDGE_FAKE_LOG=$work/log"
report $? "a run with counters"
awk '/"dram_bytes"/ { if ($2 + 0 != 3000) { print; exit 1 } found = 1 } END { exit !found }' "$work/run.json" >"$work/out"
report $? "DRAM bytes are reads and writes together"
grep -A1 '"activity"' "$work/run.json" | tail -1 >"$work/out"
grep -q '"median_us": 1.0' "$work/out"
report $? "activity records give end - start in us"
grep -n 'RangeProfiler' "$work/log" | sed 's/.*cuptiRangeProfiler//' | tr '\n' ' ' >"$work/out"
[ "$(cat "$work/out")" = "Enable GetCounterDataSize CounterDataImageInitialize SetConfig Start PushRange PopRange Stop DecodeData Disable " ]
report $? "the range profiler is called in its order and switched off"
# times are taken before the profiler is switched on
[ "$(grep -n -m1 'cuptiActivityEnable' "$work/log" | cut -d: -f1)" -lt "$(grep -n -m1 'RangeProfilerEnable' "$work/log" | cut -d: -f1)" ] &&
    grep -q 'cuptiActivityDisable' "$work/log"
report $? "activity records are switched off before counting"
"$build/ridge-probe" evaluate --cuda-lib "$work" "$work"/images/*.cdimg >"$work/out" 2>&1
report $? "the stored image evaluates to the recorded values"
awk '/"sm_clock_hz": 1980000000/ { c = 1 } /"power_w": 123.456/ { p = 1 } /"temperature_c": 45/ { t = 1 }
    /"power_limit_w": 700/ { l = 1 } /"driver": "570.00.01"/ { d = 1 } END { exit !(c && p && t && l && d) }' "$work/run.json"
report $? "clock, power, temperature, limit and driver come from NVML"
run RIDGE_FAKE_THROTTLE=0x24 && grep -q '"throttle": "sw_power_cap,sw_thermal_slowdown"' "$work/run.json"
report $? "throttling is named"

says "no permission: what to do about it" 'no permission to read counters.*NVreg_RestrictProfilingToAdminUsers=0' \
    RIDGE_FAKE_CUPTI=cuptiProfilerGetCounterAvailability=35
says "a second subscriber" 'another CUPTI client is attached' RIDGE_FAKE_CUPTI=cuptiActivityEnable=39
says "counters held by another program, DCGM first" 'taken by another program.*dcgmi profiling --pause' \
    RIDGE_FAKE_CUPTI=cuptiRangeProfilerStart=26
says "MIG" 'MIG instance cannot be profiled' RIDGE_FAKE_CUPTI=cuptiProfilerDeviceSupported=43
says "MPS" 'not supported under MPS' RIDGE_FAKE_CUPTI=cuptiRangeProfilerEnable=31
says "confidential computing" 'confidential computing' RIDGE_FAKE_CUPTI=cuptiProfilerInitialize=41
says "a virtual GPU with profiling off" 'virtual GPU with profiling switched off' RIDGE_FAKE_VGPU=1
says "WSL" 'WSL' RIDGE_FAKE_CUPTI=cuptiProfilerInitialize=45
says "a chip without metric sets" "no metric sets for chip 'TU102'" RIDGE_FAKE_CHIP=TU102
says "a metric that was not counted is no NaN" "was not counted" RIDGE_FAKE_NAN=1
says "records that do not divide among the operations" 'do not divide among 20' RIDGE_FAKE_RECORDS=19
! grep -qiE '\b(nan|inf)\b' "$work/run.json"
report $? "no NaN or infinity in a record"
says "an unknown code is given as it is" 'CUPTI error 77' RIDGE_FAKE_CUPTI=cuptiRangeProfilerStop=77
rm -f "$work/log"
run "RIDGE_FAKE_LOG=$work/log" RIDGE_FAKE_CUPTI=cuptiRangeProfilerStart=26
grep -q 'cuptiRangeProfilerDisable' "$work/log"
report $? "a failed count still switches the profiler off"
echo "1..$count"
