#!/usr/bin/env bash
# Figures that are often quoted about LLM inference and training, computed: each with what ridge gets
# and whether it holds, holds only under conditions, or does not. Runs in seconds; change models and
# devices to ask about your own case. Figures 9-12 and 14-15 are in examples/30-serving-claims.sh.
# usage: examples/10-quoted-figures.sh [RIDGE]
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
ridge=${1:-build/ridge}
export RIDGE_DATA=$PWD
. examples/lib/quoted.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What "70B" means depends on the KV heads alone: 8 as in Llama 3.1, 64 as before grouped queries, 1.
for heads in 1 8 64; do
    printf '{"model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64,
        "num_key_value_heads": %d, "intermediate_size": 28672, "vocab_size": 128256}' $heads \
        >"$work/kv$heads.json"
done
kv() { "$ridge" show "$work/kv$1.json" --kv-type "$2" --context 4096 -f json | get kv_bytes; }
# flop, bytes and their ratio in one decode pass of the bare roofline: pass OPTION...
pass() {
    "$ridge" estimate -q --ideal --output-tokens 1 -f csv "$@" 2>"$work/note" |
        awk -F, 'NR > 1 { f += $2 * $6; b += $2 * $7 } END { printf "%.6g %.6g %.6g\n", f, b, f / b }'
}
flops_of() { # FILE TABLE OPERATOR: flops of one operator
    awk -v table="\"$2\":" -v name="\"$3\"," 'index($0, table) { inside = 1 }
        inside && $1 == "\"name\":" { found = $2 == name }
        inside && found && $1 == "\"flops\":" { sub(/,/, "", $2); print $2; exit }' "$1"
}
share_of() { awk -v k="\"part\": \"$1\"" 'index($0, k) { in_ = 1 } in_ && $1 == "\"share\":" { print $2; exit }'; }

echo "1  70B in 16 bit: 'a token reads 140 GB and does 140 GFLOP; intensity about 1'"
read -r flop bytes intensity < <(pass --hw h200-sxm --model llama-3.1-70b --context 1)
printf '   ridge: %s GB, %s GFLOP, %s flop/byte\n' "$(units "$bytes" 1e9 %.1f)" "$(units "$flop" 1e9 %.1f)" \
    "$(units "$intensity" 1)"
judge "$bytes > 1.33e11 && $bytes < 1.47e11 && $intensity > 0.9 && $intensity < 1.1" \
    "holds for one sequence with a short context; a batch multiplies the flop alone" "refuted"

echo "2  'KV of a 70B model at 4K context is about 2.5 GB a request'"
printf '   ridge: %s GB (8 KV heads, 16 bit), %s GB (8, 32 bit), %s GB (64 KV heads, 16 bit)\n' \
    "$(units "$(kv 8 bf16)" 1e9)" "$(units "$(kv 8 fp32)" 1e9)" "$(units "$(kv 64 bf16)" 1e9)"
judge "$(kv 8 bf16) > 2.3e9" "holds" "holds only in 32 bit (2.50 GiB); in 16 bit it is half"

echo "3  '70B at 4096 tokens stores 40 GB of KV; reading it at 3.35 TB/s takes 12 ms a token'"
printf '   ridge: 40 GB is %s requests with 8 KV heads, %s with 64; 40 GB at %s TB/s are %s\n' \
    "$(ratio 40e9 "$(kv 8 bf16)")" "$(ratio 40e9 "$(kv 64 bf16)")" \
    "$(units "$("$ridge" show h100-sxm -f json | get memory.hbm.bandwidth value)" 1e12)" \
    "$(ms "$(ratio 40e9 "$("$ridge" show h100-sxm -f json | get memory.hbm.bandwidth value)" %.6g)")"
judge "$(kv 8 bf16) > 30e9" "holds" "the time holds; the size only for 30 requests at once with 8 KV heads, or 4 with 64"

echo "4  '7B at 2048 context needs 8.4 GB of KV a batch'"
one=$("$ridge" show llama-2-7b --context 2048 -f json | get kv_bytes)
printf '   ridge: %s GB a request in 16 bit, so that 8.4 GB are a batch of %s\n' "$(units "$one" 1e9)" \
    "$(ratio 8.4e9 "$one")"
judge "$one > 8e9" "holds" "holds only for a batch of 8 (8.59 GB)"

echo "5  H100: '528 tensor cores on 132 SMs, 989 TFLOP/s in 16 bit, 1979 in FP8, 3x the 312 of A100'"
"$ridge" show h100-sxm -f json >"$work/h100" && "$ridge" show a100-sxm-80gb -f json >"$work/a100"
sms=$(get units.count value <"$work/h100" | cut -d. -f1) cores=$(get units.matrix_cores value <"$work/h100" | cut -d. -f1)
half=$(get peaks.matrix.bf16_fp32.rate value <"$work/h100") fp8=$(get peaks.matrix.fp8_fp32.rate value <"$work/h100")
old=$(get peaks.matrix.bf16_fp32.rate value <"$work/a100")
printf '   ridge: %d x %d = %d; %s and %s TFLOP/s dense, %sx the %s of A100\n' "$sms" "$cores" \
    $((sms * cores)) "$(units "$half" 1e12 %.0f)" "$(units "$fp8" 1e12 %.0f)" \
    "$(ratio "$half" "$old")" "$(units "$old" 1e12 %.0f)"
judge "$sms * $cores == 528 && int($half / 1e12) == 989" \
    "holds for SXM, dense; PCIe does 756 and NVL 835, and sparse figures are twice these" "refuted"

echo "6  'tensor cores are 60-80 % used in GEMMs of training, 10-30 % in decode'"
estimate --hw h100-sxm --model llama-3.1-8b --context 4096 >"$work/run"
printf '   ridge: prefill of 4096 tokens %s\n' "$(per "$(get mfu_prefill_ratio <"$work/run")")"
printf '   ridge: decode, context of 512:'
for batch in 1 16 64 256; do
    used=$(estimate --hw h100-sxm --model llama-3.1-8b --context 512 --output-tokens 1 --batch $batch |
        get mfu_decode_ratio)
    printf ' %s at batch %d%s' "$(per "$used")" $batch "$([ $batch = 256 ] || echo ,)"
done
echo
judge "$(get mfu_prefill_ratio <"$work/run") > 0.5 && $used > 0.1" \
    "the first holds; the second only for large batches of short contexts, one user is below 1 %" "refuted"

echo "7  'decode does 1-5 flop a byte'"
for case in "llama-2-7b 1" "llama-3.1-8b 1" "llama-3.1-8b 8" "llama-3.1-8b 64"; do
    read -r model batch <<<"$case"
    read -r _ _ intensity < <(pass --hw h200-sxm --model "$model" --batch "$batch" --context 4096)
    attention=$("$ridge" estimate -q --ideal --hw h200-sxm --model "$model" --batch "$batch" --context 4096 \
        --output-tokens 1 -f csv | awk -F, '$1 == "attention" { print $9 }')
    printf '   ridge: %s, batch %d: %s, attention alone %s\n' "$model" "$batch" "$(units "$intensity" 1 %.1f)" \
        "$(units "$attention" 1 %.1f)"
done
judge "$intensity <= 5" "holds" \
    "holds only for batches up to about 5; attention alone stays at the query heads of a KV head"

echo "8  'GQA cuts KV 4-8x, MQA by the head count; INT8 halves, INT4 quarters; 2 bits exist'"
full=$(kv 64 bf16) gqa=$(kv 8 bf16)
printf '   ridge: 64 query heads on 8: %sx; on 1: %sx; int8 %sx, int4 %sx, int2 %sx (scales counted)\n' \
    "$(ratio "$full" "$gqa")" "$(ratio "$full" "$(kv 1 bf16)")" "$(ratio "$gqa" "$(kv 8 int8)" %.2f)" \
    "$(ratio "$gqa" "$(kv 8 int4_g64)" %.2f)" "$(ratio "$gqa" "$(kv 8 int2_g32)" %.2f)"
judge "$full / $gqa == 8 && $gqa / $(kv 8 int4_g64) > 3.5" \
    "holds; a scale and zero point for each 64 or 32 values cost 7 % of int4, 28 % of int2" "refuted"

echo "13 'a KV cache makes generation 20-100x faster; attention work a token falls from 4s^2 to 4s'"
for context in 512 2048 16384; do
    estimate --hw h100-sxm --model llama-2-7b --no-cache --context $context --output-tokens 1 >"$work/run"
    faster=$(get no_cache_ratio <"$work/run")
    printf '   ridge: 7B, %d tokens: %sx; attention flop without over with: %s\n' $context \
        "$(ratio "$faster" 1)" \
        "$(ratio "$(flops_of "$work/run" prefill_operators attention)" "$(flops_of "$work/run" operators attention)" %.0f)"
done
judge "$faster >= 20" "holds only for contexts beyond some 10000 tokens; the work ratio is s/2, as causal masks halve 4s^2" "refuted"

echo "16 'prefill and decode on separate pools: each can be sized on its own'"
# shellcheck disable=SC2054 # the commas are of ridge
load=(--gpu h100-sxm --rate 60/s --isl lognormal:2000,cv=1 --osl lognormal:200,cv=1 --tp 1 --pp 1 --weight-type bf16
      --limit 600 --ttft p95:1s --tpot p95:30ms)
for pools in aggregated disaggregated; do
    "$ridge" plan llama-3.1-8b "${load[@]}" --pools $pools -q -f json >"$work/plan" || :
    printf '   ridge: %s, %s $ per million output tokens: %s\n' $pools \
        "$(units "$(get cost_per_million_output_tokens_usd <"$work/plan")" 1 %.3f)" \
        "$(sed -nE 's/^ +"arrangement": "(.*)",?$/\1/p' "$work/plan" | head -n 1)"
    declare "$pools=$(get cost_per_million_output_tokens_usd <"$work/plan")"
done
# shellcheck disable=SC2154
judge "$disaggregated < $aggregated" "holds, and costs less here" \
    "sizes are free, but that costs no less here: it pays where limits on the gap between tokens bind"

echo "17 'TP needs all-reduces in each layer; micro-batches hide pipeline bubbles; EP needs all-to-all'"
count=$("$ridge" estimate -q --hw hgx-h100 --model llama-3.1-70b --tp 8 -f csv |
    awk -F, '$1 ~ /^all_reduce (attention|ffn)/ { n += $2 } END { print n }')
printf '   ridge: tp 8: %d all-reduces over 80 layers in a pass\n' "$count"
printf '   ridge: pp 8, share of a training step that is bubble:'
for micro in 8 32 128; do
    bubble=$("$ridge" train -q --hw superpod-h100 --model llama-3.1-70b --tp 8 --pp 8 --dp 1 --global-batch $micro \
        -f json | share_of bubble)
    printf ' %s with %d micro-batches%s' "$(per "$bubble")" $micro "$([ $micro = 128 ] || echo ,)"
done
echo
moves=$("$ridge" estimate -q --hw hgx-h100 --model mixtral-8x7b --ep 8 --dp 8 --all-to-all -f csv |
    awk -F, '/^(dispatch|combine)/ { n += $2 } END { print n }')
printf '   ridge: ep 8: %d all-to-alls over 32 layers in a pass\n' "$moves"
judge "$count == 160 && $moves == 64 && $bubble < 0.08" "holds: two a layer each; bubbles fall with micro-batches, to no less than (stages - 1) of them" "refuted"

echo "18 'MoE: 2-8 of 64-256 experts, 10-30x less compute than dense; Mixtral 8x7B 46.7B total, 12.9B active'"
for model in mixtral-8x7b qwen3-235b-a22b deepseek-v3 kimi-k2; do
    "$ridge" show $model -f json >"$work/model"
    total=$(get parameters_total <"$work/model") active=$(get parameters_active <"$work/model")
    printf '   ridge: %s: %sB total, %sB active: %sx less\n' $model "$(units "$total" 1e9 %.1f)" \
        "$(units "$active" 1e9 %.1f)" "$(ratio "$total" "$active")"
done
run=(--hw hgx-h100 --model mixtral-8x7b --tp 8 --ep 8 --batch 64 --output-tokens 1)
for how in "--moe-skew 0" "--moe-skew 0.5" "--moe-skew 0.5 --capacity-factor 1.25 --capacity-drop"; do
    # shellcheck disable=SC2086
    estimate "${run[@]}" $how >"$work/run"
    busiest=$(get expert_imbalance_ratio <"$work/run") dropped=$(get expert_dropped_ratio <"$work/run")
    printf '   ridge: %s: busiest rank %sx the mean, %s of rows dropped\n' "$how" \
        "$(units "${busiest:-1}" 1)" "$(per "${dropped:-0}")"
done
judge "$total / $active > 10" "holds for models of 64 and more experts; with 8 experts it is 3.6x, and skew takes from it" "refuted"

echo "19 'NVLink 4: 18 x 50 GB/s = 900 GB/s; PCIe 5 x16 128 GB/s'"
links=$(get links.nvlink4.links value <"$work/h100" | cut -d. -f1) each=$(get links.nvlink4.rate_per_link value <"$work/h100")
pcie=$(get links.pcie5x16.rate_per_direction value <"$work/h100")
printf '   ridge: %d x %s GB/s = %s GB/s each way; PCIe %s GB/s each way\n' "$links" "$(units "$each" 1e9 %.0f)" \
    "$(awk "BEGIN {printf \"%.0f\", $links * $each / 1e9}")" "$(units "$pcie" 1e9 %.0f)"
judge "2 * $links * $each == 900e9 && 2 * $pcie == 128e9" \
    "holds with both directions added; what one message can use is half" "refuted"

# Cycle by cycle, and with the traffic of reductions: examples/40-on-chip-network.sh
echo "20 'a network on chip joins 132 SMs, memory and 18 link ports, over 30 TB/s inside'"
"$ridge" noc h100-like --from slice --to sm --closed --links 0 -f json >"$work/noc"
inside=$(get channel_bound_bytes_per_s <"$work/noc")
l1=$(awk "BEGIN {print $sms * $(get memory.l1.bytes_per_clock value <"$work/h100") * $(get clocks.boost value <"$work/h100")}")
printf '   ridge: L2 to SMs at most %s TB/s (tightest cut %sx that); L1 and shared memory of all SMs %s TB/s\n' \
    "$(units "$inside" 1e12 %.1f)" \
    "$(ratio "$(get cut_bound_flits <"$work/noc")" "$(get channel_bound_flits <"$work/noc")" %.2f)" "$(units "$l1" 1e12 %.1f)"
judge "$inside > 30e12" "holds" \
    "refuted for the network (ports bind before the bisection); holds for the sum of L1 inside the SMs"

echo "21 'training on 2048 GPUs all-reduces 1-10 GB of gradients each iteration'"
for how in ring hierarchical in_switch; do
    "$ridge" coll -q --hw hgx-h100 --nodes 256 --ranks 2048 --bytes '1 GB' --bytes '10 GB' -a $how -f csv |
        awk -F, -v how=$how 'NR > 1 { t[++n] = 1000 * $4 } END { printf "   ridge: %s: %.1f ms for 1 GB, %.1f ms for 10 GB\n", how, t[1], t[2] }'
done
gradients=$("$ridge" show llama-2-7b -f json | get parameters_total)
printf '   ridge: gradients of 7B: %s GB in 16 bit, %s GB in 32 bit\n' "$(units "$gradients" 5e8 %.1f)" \
    "$(units "$gradients" 2.5e8 %.1f)"
judge "2 * $gradients > 10e9" "holds only for models up to 5B in 16 bit, or where tp and pp split the gradients" "holds"

echo "22 '4-bit weights quarter the memory and about double the throughput'"
"$ridge" plan llama-3.1-70b --gpu h100-sxm -q >"$work/fit" 2>&1
wide=$(sed -nE 's/.* in bf16 \(([0-9.]+) GB.*/\1/p' "$work/fit") thin=$(sed -nE 's/.* in int4_g128 \(([0-9.]+) GB.*/\1/p' "$work/fit")
printf '   ridge: 70B: %s GB become %s GB with a scale for each 128: %sx\n' "$wide" "$thin" "$(ratio "$wide" "$thin" %.2f)"
run=(--hw hgx-h100 --model llama-3.1-70b --tp 4 --context 1024 --output-tokens 1)
for batch in 1 32 256; do
    a=$(estimate "${run[@]}" --batch $batch | get tpot_excl_first_s)
    b=$(estimate "${run[@]}" --batch $batch --weight-type int4_g128 | get tpot_excl_first_s)
    printf '   ridge: batch %d: %s a token become %s: %sx\n' $batch "$(ms "$a")" "$(ms "$b")" "$(ratio "$a" "$b" %.2f)"
    [ $batch = 1 ] && alone=$(ratio "$a" "$b" %.3f)
done
judge "$wide / $thin > 3.4 && $alone > 1.4" \
    "about holds: scales, embedding and head keep it below 4x, and the gain is that of small batches" "refuted"

echo "23 'serving optimisations cut cost 10-100x against a naive system'"
# shellcheck disable=SC2054 # the commas are of ridge
load=(--gpu h100-sxm --isl lognormal:800,cv=1 --osl lognormal:200,cv=0.8 --system-prompt 500 --limit 600 --tp 1 --pp 1
      --rate 30/s --ttft p95:10s)
cost() { "$ridge" plan llama-3.1-8b -q -f json "${load[@]}" "$@" | get cost_per_million_output_tokens_usd; }
all=$(cost --weight-type fp8)
for batch in 1 8 32; do
    naive=$(cost --weight-type bf16 --scheduler static --max-sequences $batch --prefix-caching false --reservation model)
    [ $batch = 1 ] && worst=$(ratio "$naive" "$all")
    printf '   ridge: static batches of %d, 16 bit, nothing shared: %s $ per million output tokens, all of it: %s $: %sx\n' \
        $batch "$(units "$naive" 1)" "$(units "$all" 1)" "$(ratio "$naive" "$all")"
done
judge "$worst > 10 && $worst < 100" "holds under a limit of 10 s to the first token, where one replica replaces many" \
    "does not hold here"
