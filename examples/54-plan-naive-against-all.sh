#!/usr/bin/env bash
# "Serving optimisations cut cost 10-100x against a naive system": dollars per million output tokens
# of a naive system and of one with everything, each as cheap as it can be made for the same requests
# and limits. Naive: batches that start and end together, KV reserved for the whole answer, 16 bit.
# usage: examples/54-plan-naive-against-all.sh
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
ridge=${RIDGE:-build/ridge}
ask=(plan llama-3.1-8b --hw l40s --tp 1 --pp 1 --rate 12/s --isl 'lognormal:600,cv=1'
    --osl 'lognormal:300,cv=1' --system-prompt 400 --limit 600 --ttft p95:5s --tpot p95:80ms
    --brief --quiet --format json)
static_batches="static batches of 8, memory for the whole answer"

cost() { # options...: dollars per million output tokens and devices of the cheapest plan
    "$ridge" "${ask[@]}" "$@" 2>/dev/null |
        awk '/"winner": \{/ {w = 1}
             w && /"cost_per_million_output_tokens_usd"/ {gsub(/[^0-9.e+-]/, "", $2); usd = $2}
             w && n == "" && /"devices":/ {gsub(/[^0-9]/, "", $2); n = $2}
             END {if (usd == "") print "none 0"; else print usd, n}'
}

over() { # a b: their ratio
    awk -v a="$1" -v b="$2" 'BEGIN {printf "%.1f", a / b}'
}

row() { # name options...
    local name=$1 usd devices
    shift
    read -r usd devices < <(cost "$@")
    if [ "$usd" = none ]; then
        printf '%-52s keeps the limits at no size\n' "$name"
        return
    fi
    naive=${naive:-$usd}
    if [ "$name" = "$static_batches" ]; then static=$usd; fi
    last=$usd
    printf '%-52s %8.3f $ per million, %3d devices, %5sx\n' "$name" "$usd" "$devices" \
        "$(over "$naive" "$usd")"
}

verdict() { # ratio what
    awk -v x="$1" -v what="$2" 'BEGIN {
        word = x < 10 ? "is too high here" : x > 100 ? "is too low here" : "holds"
        printf "   against %s: %.1fx, the figure %s\n", what, x, word }'
}

echo "23 'Serving optimisations cut cost 10-100x against a naive system'"
row "one request at a time" --scheduler static --max-sequences 1
row "$static_batches" --scheduler static --max-sequences 8 --reservation output
row "continuous batching, paged KV" --scheduler vllm --prefix-caching false
row "and prefix caching" --scheduler vllm
row "and 8-bit weights and KV" --scheduler vllm --weight-type fp8 --kv-type fp8
row "and speculation or pools where they pay" --scheduler vllm --weight-type fp8 --kv-type fp8 \
    --drafts 0,3 --pools aggregated,1:1,1:2
verdict "$(over "$naive" "$last")" "one request at a time"
verdict "$(over "$static" "$last")" "static batches"
