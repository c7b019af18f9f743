#!/usr/bin/env bash
# What ridge-probe says and returns where the driver is absent, a stub, broken or without a device.
# usage: tests/gpu/check_driver.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -u
build=$(realpath "${1:-build}")
probe=$build/ridge-probe
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8
unset RIDGE_CUDA_LIB
count=0

# expect NAME CODE PATTERN command...: exit code and text (stdout and stderr)
expect() {
    local name=$1 code=$2 pattern=$3 got
    shift 3
    "$@" >"$work/out" 2>&1
    got=$?
    count=$((count + 1))
    if [ "$got" -eq "$code" ] && grep -qE -- "$pattern" "$work/out"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name: exit $got, want $code and /$pattern/"
        sed 's/^/# /' "$work/out" | head -5
    fi
}

emulated() { env "$@"; }
emu=$build/kernels/emu
run=("$probe" run kv_read --extent small --samples 3 --least-us 0 --counters no --cuda-lib)

# An empty folder on --cuda-lib still finds a real driver, so hide it by a file that is no library.
mkdir "$work/none" "$work/stub"
if ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
    echo "ok 1 - no driver # SKIP this machine has one"
    echo "ok 2 - no driver, --skip # SKIP this machine has one"
    count=2
else
    expect "no driver is exit 3 and says so" 3 "no CUDA driver" "$probe" run
    expect "no driver with --skip is exit 77" 77 "no CUDA driver" "$probe" run --skip
fi
stub=
for folder in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda; do
    [ -e "$folder/lib64/stubs/libcuda.so" ] && stub=$folder/lib64/stubs/libcuda.so
done
if [ -n "$stub" ]; then
    cp "$stub" "$work/stub/libcuda.so.1"
    expect "the toolkit's stub library is told from a driver" 3 "stub library" \
        "$probe" run --cuda-lib "$work/stub"
    expect "the stub with --skip is exit 77" 77 "stub library" "$probe" run --skip \
        --cuda-lib "$work/stub"
else
    count=$((count + 1))
    echo "ok $count - stub library # SKIP no CUDA toolkit here"
fi

expect "an emulated driver runs" 0 '"schema": "ridge.probe/1"' "${run[@]}" "$emu"
expect "no device" 3 "sees no device" emulated RIDGE_EMU_FAIL=cuInit=100 "${run[@]}" "$emu"
expect "no device by count" 3 "sees no device" emulated RIDGE_EMU_DEVICES=0 "${run[@]}" "$emu"
expect "driver and kernel module differ" 3 "different driver versions" \
    emulated RIDGE_EMU_FAIL=cuInit=803 "${run[@]}" "$emu"
expect "MPS configured but not there" 3 "MPS server" \
    emulated RIDGE_EMU_FAIL=cuInit=805 "${run[@]}" "$emu"
expect "an unknown driver error is named with its number" 3 "cuInit failed: .*\\(999\\)" \
    emulated RIDGE_EMU_FAIL=cuInit=999 "${run[@]}" "$emu"
expect "compute mode prohibited" 3 "prohibited" emulated RIDGE_EMU_COMPUTE_MODE=2 "${run[@]}" "$emu"
expect "a GPU without code for it" 3 "have no code for this GPU" \
    emulated RIDGE_EMU_FAIL=cuModuleLoadData=209 "${run[@]}" "$emu"
expect "a launch that fails is exit 3" 3 "rg_fill failed" \
    emulated RIDGE_EMU_FAIL=cuLaunchKernel=719 "${run[@]}" "$emu"
expect "out of memory says how much was asked and free" 3 "nothing could be run.*asked for" \
    emulated RIDGE_EMU_MEMORY_MIB=0 "${run[@]}" "$emu"
expect "a device number out of range is usage" 2 "device '7' is not among" \
    "${run[@]}" "$emu" --device 7
expect "MIG is recorded" 0 '"mig": true' emulated "RIDGE_EMU_NAME=H100 MIG 1g.10gb emulation" \
    "${run[@]}" "$emu"
expect "a clock far below the default leaves no sample, which is an error and no NaN" 3 \
    "no valid sample: all '4' ran below" emulated RIDGE_EMU_CLOCK_KHZ=2000000 "${run[@]}" "$emu"
expect "--clock-ratio 0 takes them anyway" 0 '"samples_discarded": 0' \
    emulated RIDGE_EMU_CLOCK_KHZ=2000000 "${run[@]}" "$emu" --clock-ratio 0
expect "unknown option names the nearest" 2 "did you mean '--samples'" "$probe" run --sample 3
expect "unknown kernel names the nearest" 2 "did you mean 'kv_read'" "$probe" run kv_red
expect "unknown command names the nearest" 2 "did you mean 'calibrate'" "$probe" calibrat
expect "help" 0 "usage: ridge-probe" "$probe" --help
echo "1..$count"
