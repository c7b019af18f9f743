#!/usr/bin/env bash
# Which of five GPU types serves Llama-3.1-70B most cheaply for the Azure conversation trace of 2023,
# with a first token within 2 s and a token every 60 ms for 95 of 100 requests?
# The trace is not part of ridge: https://github.com/Azure/AzurePublicDataset, AzureLLMInferenceTrace_conv.
# usage: examples/50-plan-azure.sh [TRACE.csv [FIGURE.svg]]
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
ridge=${RIDGE:-build/ridge}
trace=${1:-${SHARED:-../shared}/serving/traces/azure2023_conv_first6000.csv}
if [ ! -e "$trace" ]; then
    echo "no trace at $trace"
    exit 77
fi
plot=()
[ -n "${2:-}" ] && plot=(--plot "$2")
"$ridge" plan llama-3.1-70b --trace "$trace" --limit 3000 \
    --hw h100-sxm,h200-sxm,a100-sxm-80gb,l40s,mi300x --weight-type bf16,fp8 --pp 1,2 \
    --ttft p95:2s --tpot p95:60ms --carbon '400 g/kWh' --quiet "${plot[@]}"
