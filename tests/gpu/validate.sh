#!/usr/bin/env bash
# One command on a machine with an NVIDIA GPU since Ampere: calibrate, check, time, count, and compare
# with what ridge predicts. Everything goes into BUILD/gpu; see kernels/README.md. `make gpu-validate`.
# usage: tests/gpu/validate.sh BUILD [ridge-probe options, such as --device 1 or --extent full]
# Exit: 0 all fine, 1 a check failed or a target was missed, 3 no usable GPU.
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
shift
probe=$build/ridge-probe
ridge=$build/ridge
out=$build/gpu
mkdir -p "$out"
verdict=0
step() { echo "== $1" >&2; }

step "what is here"
"$probe" env "$@" 2>&1 | tee "$out/env.txt"
[ "${PIPESTATUS[0]}" -eq 0 ] || exit 3

step "calibrate: $out/measured.yaml"
"$probe" calibrate --output "$out/measured.yaml" "$@" || exit $?

step "check every kernel against its reference: $out/check.tap"
"$probe" check "$@" >"$out/check.tap" || verdict=1
grep -c '^ok' "$out/check.tap" | sed 's/$/ checks passed/'
grep '^not ok' "$out/check.tap"

step "time and count: $out/run.json, $out/images"
"$probe" run --output "$out/run.json" --images "$out/images" "$@" 2>"$out/run.txt"
code=$?
if [ "$code" -ne 0 ]; then
    tail -3 "$out/run.txt" >&2
    exit "$code"
fi

# Tables of measured times reuse their buffers, so what fits in L2 is read from there: --warm. What
# ridge predicts is the vendor's product and a good attention kernel, not the SIMT one.
step "times for tables, warm: $out/tables"
table() { # record, kernels and options
    local name=$1
    shift
    "$probe" run "$@" --warm --counters no --output "$out/$name.json" --csv "$out/tables" 2>>"$out/run.txt" ||
        echo "no table of $name" >&2
}
table attention decode decode_mla "$@" --variant mma
table prompts prefill "$@" --variant causal
table products gemm "$@" --variant cublaslt_best
table all-reduce allreduce nccl "$@"

step "targets"
"$probe" targets "$out/run.json" 2>&1 | tee "$out/targets.txt"
[ "${PIPESTATUS[0]}" -eq 0 ] || verdict=1
if compgen -G "$out/images/*.cdimg" >/dev/null; then
    "$probe" evaluate "$out"/images/*.cdimg >"$out/counters.csv" || verdict=1
fi

step "predicted against measured: $out/validate-*.json"
if grep -q '^base:' "$out/measured.yaml"; then
    for table in "$out"/tables/*.csv; do
        [ -e "$table" ] || continue
        op=$(basename "$table" .csv)
        for format in text json; do
            "$ridge" validate --hw "$out/measured.yaml" --op "$op" --measured "$table" --format "$format" \
                >"$out/validate-$op.$format" 2>"$out/validate-$op.err"
        done
        if [ -s "$out/validate-$op.text" ]; then cat "$out/validate-$op.text"; else cat "$out/validate-$op.err"; fi
    done
else
    echo "no hardware file for this device: give one with --base NAME" >&2
fi
echo "all of it is in $out"
exit "$verdict"
