#!/usr/bin/env bash
# Measured runs of real servers, replayed: errors within what ridge promises. TAP.
#   10 %  ridge's own step time, engine constants fitted on a run of ANOTHER device and model (the scale
#         of its kernels stays behind)
#   15 %  nothing fitted at all
#   2 %   after fitting on the run itself: what is left is scheduling, so it must be small
# A run in which a request's time is mostly queueing cannot tell rules apart; preemptions can: the
# 4090 run overfills its memory, so a simulator without preemption is off by far more.
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
cd "$(dirname "$0")/../.." || exit 2
ridge=${RIDGE:-$build/ridge}
export RIDGE_DATA=$PWD
runs=../shared/serving/measured-runs
a=rtx4090-llama31-8b-tp1 b=rtxpro6000-qwen3-32b-tp2
if [ ! -d $runs/$a ] || [ ! -d $runs/$b ]; then
    echo "ok 1 - measured runs # SKIP no $runs"
    echo "1..1"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0 bad=0
within() { # name limit_percent arguments...: TTFT and E2E errors of one replay
    local name=$1 limit=$2 out
    shift 2
    n=$((n + 1))
    out=$("$ridge" serve "$@" -q -f json 2>&1 | grep -E '"(ttft|e2e)_wape"' | grep -oE '[0-9.e-]+,?$' | tr -d ,)
    if awk -v l="$limit" '{c++; if (!($1 * 100 <= l)) b = 1} END {exit !(c == 2 && !b)}' <<<"$out"; then
        echo "ok $n - $name: $(awk '{printf "%.2f %% ", $1 * 100}' <<<"$out")within $limit %"
    else
        echo "not ok $n - $name: $(tr '\n' ' ' <<<"$out") limit $limit %"
        bad=1
    fi
}
within "fitted on $a itself" 2 --measured $runs/$a --fit-engine "$work/a.yaml"
within "fitted on $b itself" 3 --measured $runs/$b --fit-engine "$work/b.yaml"
within "fitted on $a, replayed on $b" 10 "$work/a.yaml" --measured $runs/$b
within "fitted on $b, replayed on $a" 10 "$work/b.yaml" --measured $runs/$a
within "nothing fitted, $a" 15 --measured $runs/$a
within "nothing fitted, $b" 15 --measured $runs/$b
echo "1..$n"
exit $bad
