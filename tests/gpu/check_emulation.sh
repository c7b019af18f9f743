#!/usr/bin/env bash
# Whether the checks would notice: the emulation is broken on purpose in one way after the other, and
# the kernels that depend on that must then fail their checks, or hang and be found hanging.
# usage: tests/gpu/check_emulation.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
count=0
broken() { # what, text, kernels...
    local what=$1 text=$2 out failed
    shift 2
    out=$(RIDGE_EMU_BREAK=$what "$build/ridge-probe" check "$@" --cuda-lib "$build/kernels/emu" 2>&1)
    code=$?
    failed=$(grep -c '^not ok' <<<"$out")
    count=$((count + 1))
    if [ "$code" -ne 0 ] && [ "$failed" -gt 0 ]; then
        echo "ok $count - $text is noticed ($failed checks fail)"
    else
        echo "not ok $count - $text is not noticed: exit $code, $failed failed checks"
    fi
}
broken sync "a missing block barrier in decode" decode
broken sync "a missing block barrier in latent decode" decode_mla
broken sync "a missing block barrier in prefill" prefill
broken copy "a wait for one copy too few in decode" decode
broken copy "a wait for one copy too few in latent decode" decode_mla
broken copy "a wait for one copy too few in products" gemm
broken copy "a wait for one copy too few in prefill" prefill
broken swizzle "a tensor copy without its swizzle" gemm
broken wait "a missing wait for tensor copies" gemm
broken wait "a missing wait for bulk copies" kv_read
broken flag "a missing wait for the other ranks in all-reduce" allreduce_virtual
RIDGE_EMU_BREAK=nothing "$build/ridge-probe" check kv_read --cuda-lib "$build/kernels/emu" >/dev/null 2>&1
[ $? -eq 0 ] && echo "ok $((count + 1)) - whole, it passes" || echo "not ok $((count + 1)) - whole, it fails"
echo "1..$((count + 1))"
