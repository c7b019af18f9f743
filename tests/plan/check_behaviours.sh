#!/usr/bin/env bash
# What planners ask in public threads, as tests. Signs and sums only, which hold whatever the step
# times are. TAP.
# usage: tests/plan/check_behaviours.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/../.." || exit 2
ridge=${RIDGE:-$PWD/${1:-build}/ridge}
export RIDGE_DATA=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0 failed=0
is() { # what, status
    n=$((n + 1))
    if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; failed=1; fi
}
figure() { # key file: a top-level figure of the JSON
    grep -oE "^  \"$1\": [-0-9.e+]+" "$2" | awk '{print $2}'
}

# Memory by Little's law for 5, 20 and 50 requests a second: inside at once = rate x time inside.
last=0 rising=0
for rate in 5 20 50; do
    "$ridge" plan llama-3.1-8b --hw h100-sxm --tp 1 --pp 1 --rate $rate/s --isl 1000 --osl 200 \
        --limit 600 --ttft p95:1s --tpot p95:40ms --brief -q -f json >"$work/$rate.json"
    inside=$(figure requests_in_system "$work/$rate.json")
    cache=$(figure kv_bytes_in_use "$work/$rate.json")
    mean=$(awk '/"e2e_s": \{/ {e = 1} e && /"mean"/ {gsub(/[^0-9.e+-]/, "", $2); print $2; exit}' "$work/$rate.json")
    # 600 arrivals of a seeded Poisson stream: their rate is within 15 % of the asked one.
    # A request holds 1000 + 200/2 tokens of 131072 bytes on average.
    awk -v i="$inside" -v c="$cache" -v r=$rate -v t="$mean" 'BEGIN {
        exit !(i > 0.85 * r * t && i < 1.15 * r * t && c > 0.999 * i * 1100 * 131072 && c < 1.001 * i * 1100 * 131072) }'
    is "at $rate requests/s memory follows Little's law: $inside inside" $?
    rising=$(awk -v a="$last" -v b="$cache" -v r=$rising 'BEGIN {print r + (b > a)}')
    last=$cache
done
[ "$rising" -eq 3 ]
is "more requests hold more memory" $?

# The least number of devices by weight type. A 49B model in 16 bit is 100 GB: not one card of 80 GB.
cat >"$work/49b.yaml" <<'Y'
kind: model
name: dense-49b
source: "made up for this test: 56 layers of Llama-3.1-70B, 50.0e9 parameters"
hidden: 8192
vocab: 128256
max_positions: 131072
tied_embeddings: false
dtype: bf16
layers:
  kinds:
    full:
      mixer: {kind: full, heads: 64, kv_heads: 8, head_dim: 128, rope_dim: 128}
      ffn: {kind: dense, gated: true, inter: 28672}
      norms: {count: 2}
  order:
    - {repeat: 56, of: [full]}
Y
for model in "$work/49b.yaml" llama-3.1-70b; do
    "$ridge" plan "$model" --gpu h100-sxm -q -f csv >"$work/fits.csv"
    awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) c[$i] = i; next}
        $c["least"] == "true" {least[$c["weight_type"]] = $c["devices"]; bytes[$c["weight_type"]] = $c["weight_bytes"]}
        END {for (t in least) if (least[t] * 80e9 < bytes[t]) exit 1
             exit !(bytes["bf16"] > 99e9 && least["bf16"] >= 2 && least["int4_g128"] <= least["fp8"] && least["fp8"] <= least["bf16"])}' "$work/fits.csv"
    is "${model##*/}: least devices by weight type, never less than its bytes need" $?
done

# "What do I need for 70B?" with nothing but a card, in the words of three forums.
for card in rtx-4090 rtx-3090 a10; do
    "$ridge" plan llama-2-70b --gpu $card -q >"$work/card.txt"
    is "llama-2-70b on $card is answered" $?
    grep -qE 'is the least|does not fit' "$work/card.txt"
    is "with the least number of them, or no" $?
done

# Two A100 PCIe and a 70B model in 16 bit: 17 tokens/s measured, 30 wanted; weights alone allow 28.
"$ridge" plan llama-3.1-70b --gpu a100-pcie-80gb --tp 2 --pp 1 --weight-type bf16 --isl 200 -q -f csv |
    awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) c[$i] = i} NR == 2 {
        b = $c["single_stream_bound_tokens_per_s"]; s = $c["single_stream_tokens_per_s"]
        exit !(b > 27 && b < 28.5 && s < b && s > 15)}'
is "both are said: 30 tokens/s are beyond the bound, and what is within reach" $?

# 72B on 8 A100 without NVLink: two replicas of four devices beat one of eight.
"$ridge" plan qwen2.5-72b --hw pcie-a100-80gb --most-devices 8 --goal devices --rate 2/s --isl 1000 \
    --osl 300 --tpot p95:100ms --ttft p95:3s --limit 400 --tp 4,8 --pp 1 --brief -q >"$work/72b.txt"
grep -q '^8 x a100-pcie-80gb: 2 replicas of tp4,' "$work/72b.txt"
is "without NVLink two TP4 beat one TP8" $?

# Prefill and decode on pools of their own, and both in one, on the same requests.
"$ridge" plan llama-3.1-8b --hw h100-sxm --tp 1 --pp 1 --rate 60/s --isl 3000 --osl 150 --limit 600 \
    --ttft p95:1s --tpot p95:20ms --pools aggregated,1:1,2:1,3:1 --brief -q -f json >"$work/pools.json"
is "aggregated and disaggregated are compared on one trace" $?
[ "$(grep -c '"arrangement": "tp1 pools' "$work/pools.json")" -ge 2 ]
is "with several ratios of the pools" $?

# Cost against a naive system.
out=$(examples/54-plan-naive-against-all.sh)
is "a naive system and all optimisations are costed" $?
[ "$(grep -c 'the figure' <<<"$out")" -eq 2 ]
is "with a verdict on the quoted figure" $?
awk '/\$ per million/ {for (i = 1; i <= NF; i++) if ($i == "$") v = $(i - 1); if (n++ && v > last * 1.0001) bad = 1; last = v} END {exit bad || n < 5}' \
    <<<"$(grep -v 'static batches' <<<"$out")"
is "no optimisation makes the cheapest plan dearer" $?
echo "1..$n"
exit $failed
