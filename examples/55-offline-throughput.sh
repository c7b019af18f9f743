#!/usr/bin/env bash
# How many tokens a second does Llama-3.3-70B in FP8 give on one GPU when all requests are there at
# once, as offline benchmarks ask? Prompts and answers of fixed lengths (isl/osl), TensorRT-LLM's
# rules, the best split over 1 to 8 GPUs of each kind; output tokens a second and GPU.
# usage: examples/55-offline-throughput.sh [MODEL]
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
ridge=${RIDGE:-build/ridge}
model=${1:-llama-3.3-70b}
shapes='128/128 128/2048 1000/1000 2048/128 2048/2048 5000/500'
printf '%s, FP8: output tokens/s a GPU, and the split that gives them\n' "$model"
printf '%-10s  %-16s  %-16s  %-16s\n' isl/osl h100-sxm h200-sxm b200-sxm
for shape in $shapes; do
    "$ridge" plan "$model" --offline --hw h100-sxm,h200-sxm,b200-sxm --goal devices \
        --scheduler trtllm --weight-type fp8 --kv-type fp8 --pp 1 \
        --isl "${shape%/*}" --osl "${shape#*/}" --limit 2000 --quiet --format csv |
        awk -F, -v shape="$shape" '
            NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            { best[$at["device"]] = sprintf("%7.0f  %s", $at["output_tokens_per_s_per_gpu"], $at["arrangement"]) }
            END { printf "%-10s  %-16s  %-16s  %-16s\n", shape, best["h100-sxm"], best["h200-sxm"], best["b200-sxm"] }'
done
