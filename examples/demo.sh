#!/usr/bin/env bash
# The main job on real input: a model's config.json and a GPU's name in, times, memory, bottleneck
# and a roofline plot out; all of it lands in BUILD/demo with an index page.
# usage: examples/demo.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build=${1:-build}
cd "$(dirname "$0")/.."
ridge=$build/ridge
out=$build/demo
mkdir -p "$out"

hw=h200-sxm model=llama-3.1-8b
echo "== $model on one $hw, 32 users at 4096 tokens"
"$ridge" estimate --hw $hw --model $model --batch 32 --context 4096 --quiet | tee "$out/estimate.txt"
"$ridge" estimate --hw $hw --model $model --batch 32 --context 4096 --format json -o "$out/estimate.json"
"$ridge" roofline --hw $hw --model $model --batch 32 --context 4096 --plot "$out/roofline.svg" --format csv -o "$out/roofline-points.csv"
"$ridge" roofline --hw $hw --model $model --batch 32 --context 4096 --plot "$out/roofline.png" >"$out/roofline.txt"
echo
echo "report: $out/index.html  plot: $out/roofline.svg, $out/roofline.png"
