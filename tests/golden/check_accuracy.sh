#!/usr/bin/env bash
# Predictions against the measured tables beside the checkout, within the limits kept here.
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
cd "$(dirname "$0")/../.." || exit 2
ridge=$build/ridge tables=../shared/measured number=0

held() { # name device table limits [options]
    number=$((number + 1))
    local name=$1 device=$2 table=$3 limits=$4 log
    shift 4
    if [ ! -e "$tables/$table" ]; then
        echo "ok $number - $name # SKIP no $tables/$table"
        return
    fi
    if log=$("$ridge" validate --quiet --hw "$device" --measured "$tables/$table" \
        --outliers $tables/outliers.csv --limits "tests/golden/$limits" --worst 0 "$@" 2>&1); then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        grep -A 12 -E 'Limits passed|ridge:' <<<"$log" | sed 's/^/# /'
    fi
}

for op in gemm context_attention generation_attention encoder_attention context_mla generation_mla \
    moe nccl custom_allreduce; do
    held "$op on an H200 stays within its limits" h200-sxm "h200_sxm/$op.csv" accuracy_h200.yaml
done
for op in gemm context_attention generation_attention moe nccl custom_allreduce; do
    held "$op on an A100 stays within its limits" a100-sxm-80gb "a100_sxm/$op.csv" \
        accuracy_a100.yaml --weight-copies 5
done
for op in gemm context_attention generation_attention; do
    held "$op on an A100 with an H200's constants" a100-sxm-80gb "a100_sxm/$op.csv" \
        carried_limits.yaml --constants h200-sxm
    held "$op on an H200 with an A100's constants" h200-sxm "h200_sxm/$op.csv" \
        carried_limits.yaml --constants a100-sxm-80gb
done
echo "1..$number"
