#!/usr/bin/env bash
# What is often said of serving optimisations, simulated: each figure with the conditions under which
# it holds or does not. Runs in seconds; change models, devices or loads to ask about your own case.
# usage: examples/30-serving-claims.sh [RIDGE]
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
ridge=${1:-build/ridge}
export RIDGE_DATA=$PWD
. examples/lib/quoted.sh

# Chat lengths: mean and spread of ShareGPT-like talk.
chat=(--prompt "lognormal:300,cv=1.2" --answer "lognormal:250,cv=1")
small=(--model llama-2-13b --hw a100-sxm-40gb --max-model-len 2048 --over-long cut)

echo "9  Paged KV: '2-4x more requests in memory; fragmentation 37 % to under 5 %'"
load=(--arrivals at-once "${chat[@]}" --limit 400 --no-prefix-caching)
for block in 16 32; do
    paged=$(serve "${small[@]}" "${load[@]}" --block $block)
    printf '   pages of %d: %d requests at once, %s reserved and not filled\n' $block \
        "$(get max_batch <<<"$paged")" "$(per "$(get kv_internal_fragmentation <<<"$paged")")"
done
for kind in output model; do
    fixed=$(serve "${small[@]}" "${load[@]}" --reservation $kind)
    printf '   contiguous for the %s length: %d at once (%sx fewer), %s not filled, %s free in pieces too small\n' \
        $kind "$(get max_batch <<<"$fixed")" \
        "$(ratio "$(get max_batch <<<"$paged")" "$(get max_batch <<<"$fixed")")" \
        "$(per "$(get kv_internal_fragmentation <<<"$fixed")")" \
        "$(per "$(get kv_external_fragmentation <<<"$fixed")")"
done

echo "10 Continuous batching: '10-20x over static batching'"
load=(--model llama-3.1-8b --hw h100-sxm --arrivals at-once "${chat[@]}" --limit 1500)
continuous=$(serve "${load[@]}" --max-sequences 256 | get output_tokens_per_s)
for batch in 8 32 256; do
    static=$(serve "${load[@]}" --policy static --max-sequences $batch | get output_tokens_per_s)
    printf '   static batches of %d: %sx less output\n' $batch "$(ratio "$continuous" "$static")"
done

echo "11 Speculation: '2-3x' with 4 drafts, a draft model of 5 % of the cost, 70 % accepted"
for users in 1 16 64 256; do
    load=(--model llama-3.1-70b --hw hgx-h100 --tp 4 --arrivals "closed:$users" --prompt 500 --answer 200
          --limit $((users * 6)) --max-sequences 256 --sync)
    plain=$(serve "${load[@]}" | get tpot_excl_first_s mean)
    drafted=$(serve "${load[@]}" --drafts 4 --acceptance 0.7 --draft-cost 0.05 | get tpot_excl_first_s mean)
    printf '   %d users: %s a token, %s with drafts: %sx\n' $users "$(ms "$plain")" "$(ms "$drafted")" \
        "$(ratio "$plain" "$drafted" %.2f)"
done

echo "12 Prefix caching: 'cuts TTFT 5-10x on repeated prefixes'"
for prefix in 500 2000 8000; do
    load=(--model llama-3.1-8b --hw h100-sxm --arrivals poisson:2/s --prompt 200 --answer 100
          --system-prompt "$prefix" --limit 400)
    on=$(serve "${load[@]}" | get ttft_s p50) off=$(serve "${load[@]}" --no-prefix-caching | get ttft_s p50)
    printf '   common prefix of %d and 200 own tokens: %s instead of %s: %sx\n' $prefix "$(ms "$on")" \
        "$(ms "$off")" "$(ratio "$off" "$on")"
done

echo "14 Window with sinks: 'bounds memory for endless streams'"
load=(--model llama-3.1-8b --hw h100-sxm --arrivals at-once --prompt 1000 --limit 4 --max-model-len 200000
      --no-prefix-caching)
for answer in 10000 100000; do
    whole=$(serve "${load[@]}" --answer $answer | get kv_blocks_max)
    window=$(serve "${load[@]}" --answer $answer --kv-window 4096 --kv-sinks 4 | get kv_blocks_max)
    printf '   4 streams of %d tokens: %d blocks whole, %d with a window of 4096 and 4 sinks\n' $answer \
        "$whole" "$window"
done

echo "15 Selective caching, recomputed layers, split KV"
load=(--model llama-3.1-70b --hw hgx-h100 --tp 4 --arrivals at-once --prompt 32000 --answer 200 --limit 64
      --max-model-len 40000)
all=$(serve "${load[@]}") keep=$(serve "${load[@]}" --kv-keep 0.15)
printf '   keeping 15 %%: %d long requests at once instead of %d, %s instead of %s a token (accuracy is not simulated)\n' \
    "$(get max_batch <<<"$keep")" "$(get max_batch <<<"$all")" \
    "$(ms "$(get tpot_excl_first_s mean <<<"$keep")")" "$(ms "$(get tpot_excl_first_s mean <<<"$all")")"
again=$(serve "${load[@]}" --recompute-layers 0.1)
printf '   recomputing the first 10 %% of the layers: %d at once, but %s a token\n' \
    "$(get max_batch <<<"$again")" "$(ms "$(get tpot_excl_first_s mean <<<"$again")")"

load=(--model llama-3.1-8b --hw hgx-h100 --arrivals at-once --prompt 32000 --answer 200 --limit 60
      --max-model-len 40000)
for ranks in 1 4 8; do
    split=$(serve "${load[@]}" --cp "$ranks")
    printf '   KV of 32K sequences split over %d devices: %d at once, %s a token\n' "$ranks" \
        "$(get max_batch <<<"$split")" "$(ms "$(get tpot_excl_first_s mean <<<"$split")")"
done

echo "16 Prefill and decode apart: 'each can be sized on its own' (4 devices)"
load=(--model llama-3.1-8b --hw hgx-h100 --arrivals poisson:30/s --prompt "lognormal:2000,cv=1"
      --answer "lognormal:200,cv=1" --limit 3000 --router least-loaded --ttft "1 s" --tpot "25 ms")
mixed=$(serve "${load[@]}" --replicas 4)
printf '   4 mixed: gap between tokens p99 %s, TTFT p99 %s, %s within limits\n' \
    "$(ms "$(get inter_token_s p99 <<<"$mixed")")" "$(ms "$(get ttft_s p99 <<<"$mixed")")" \
    "$(per "$(get good_share <<<"$mixed")")"
for split in "1 3" "2 2" "3 1"; do
    read -r prefill decode <<<"$split"
    apart=$(serve "${load[@]}" --prefill-replicas "$prefill" --replicas "$decode")
    printf '   %d prefill + %d decode: gap p99 %s, TTFT p99 %s, %s within limits\n' "$prefill" "$decode" \
        "$(ms "$(get inter_token_s p99 <<<"$apart")")" "$(ms "$(get ttft_s p99 <<<"$apart")")" \
        "$(per "$(get good_share <<<"$apart")")"
done
