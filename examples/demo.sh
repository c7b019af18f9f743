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
run=(--hw "$hw" --model "$model" --batch 32 --context 4096 --quiet)
"$ridge" estimate "${run[@]}" | tee "$out/estimate.txt"
"$ridge" estimate "${run[@]}" --format json -o "$out/estimate.json"
"$ridge" estimate "${run[@]}" --format html --plot "$out/roofline.svg" -o "$out/index.html"
"$ridge" roofline "${run[@]}" --prompt 4096 --plot "$out/roofline.png" --format csv -o "$out/roofline-operators.csv"
echo
echo "report: $out/index.html  plot: $out/roofline.svg, $out/roofline.png"
