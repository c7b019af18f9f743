#!/usr/bin/env bash
# What the README shows is what the commands print: every console block of it runs as a transcript.
# usage: tests/cli/check_readme.sh BUILD      README_UPDATE=1 writes today's output into README.md
# and draws its figure
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/../.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The README says "--table measured"; the tables lie beside the checkout, where they are.
awk '/^```console$/ { on = 1; next } /^```$/ { if (on) print ""; on = 0 } on' README.md |
    sed 's#--table measured#--table $SHARED/measured#' >"$work/readme.t"
if [ "${README_UPDATE:-0}" = 1 ]; then
    tests/cli/run.sh -u "$work/readme.t" >/dev/null
    sed -i 's#--table $SHARED/measured#--table measured#' "$work/readme.t"
    awk -v BLOCKS="$work/readme.t" '
        /^```console$/ { print; on = 1; while ((getline line < BLOCKS) > 0 && line != "") print line; next }
        /^```$/ { on = 0 }
        !on' README.md >"$work/README.md" && cp "$work/README.md" README.md
    "${RIDGE:-build/ridge}" estimate --hw h200-sxm --model llama-3.1-8b --batch 32 --context 4096 -q \
        --plot "$work/roofline.svg" >/dev/null && cp "$work/roofline.svg" examples/roofline-h200.svg
    exit
fi
tests/cli/run.sh "$work/readme.t"
