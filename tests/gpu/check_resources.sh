#!/usr/bin/env bash
# Registers, spills, shared memory and blocks on an SM of every kernel, without a GPU: what ptxas
# reported during the build, with the block sizes and shared memory that the checks launched, against
# tests/gpu/resources.golden. Also: every kernel that is built is run by some check.
# Needs nvcc for the build; the golden figures hold for one version of it and are skipped for others.
# usage: tests/gpu/check_resources.sh BUILD [-u]     -u rewrites the golden file
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
golden=tests/gpu/resources.golden
if ! compgen -G "$build/kernels/*.ptxas" >/dev/null || [ "$(cat "$build/kernels/toolkit" 2>&1)" = no ]; then
    echo "ok 1 - resources of kernels # SKIP no nvcc, so no kernels were built"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
toolkit=$(cut -d' ' -f1 "$build/kernels/toolkit")
version=$("$toolkit/bin/nvcc" --version | sed -n 's/.*, V\([0-9.]*\).*/\1/p')

# ptxas: "Compiling entry function 'NAME' for 'ARCH'", then the spill line, then "Used N registers"
cat "$build"/kernels/*.ptxas | awk -v q="'" '
    /Compiling entry function/ { split($0, part, q); name = part[2]; arch = part[4] }
    /spill stores/ { for (i = 2; i <= NF; i++) if ($i == "spill") { spill[name " " arch] += $(i - 2) } }
    /Used [0-9]+ registers/ { for (i = 1; i <= NF; i++) if ($i == "Used") print name, arch, $(i + 1), spill[name " " arch] + 0 }
' | sort >"$work/ptxas"

for device_count in 1 4; do
    RIDGE_EMU_DEVICES=$device_count RIDGE_EMU_LOG=$work/log "$build/ridge-probe" check \
        --cuda-lib "$build/kernels/emu" >"$work/tap" 2>&1
done
# the run command alone uses these
RIDGE_EMU_LOG=$work/log "$build/ridge-probe" run mix launch --extent small --samples 3 --least-us 0 \
    --counters no --cuda-lib "$build/kernels/emu" >/dev/null 2>&1
# (streams also ask for memory that they do not use, to keep blocks off an SM)
sort "$work/log" | awk '{ if ($3 + 0 > most[$1] + 0) most[$1] = $3; threads[$1] = $2 }
    END { for (k in threads) print k, threads[k], k ~ /^rg_stream_/ ? 64 : most[k] + 0 }' | sort >"$work/launched"

missing=$(cut -d' ' -f1 "$work/ptxas" | sort -u | join -v1 - "$work/launched")
if [ -z "$missing" ]; then
    echo "ok 1 - every kernel that is built is run by a check"
else
    echo "not ok 1 - no check runs $(echo "$missing" | tr '\n' ' ')"
fi
if awk '$4 > 0 { exit 1 }' "$work/ptxas"; then
    echo "ok 2 - no kernel spills registers"
else
    echo "not ok 2 - spills: $(awk '$4 > 0 { print $1, $2, $4 }' "$work/ptxas" | tr '\n' ';')"
fi
if ! echo '#include <cuda_occupancy.h>' | ${CC:-cc} -isystem "$toolkit/include" -E - >/dev/null 2>&1; then
    echo "ok 3 - occupancy # SKIP this toolkit lacks cuda_occupancy.h"
    echo "1..3"
    exit 0
fi
if ! ${CC:-cc} -std=c11 -isystem "$toolkit/include" tests/gpu/occupancy.c -o "$work/occupancy" 2>"$work/err"; then
    echo "not ok 3 - occupancy tool does not compile"
    sed 's/^/# /' "$work/err" | head -5
    exit 0
fi
join "$work/ptxas" "$work/launched" | awk '{ print $1, $2, $3, $5, $6 }' | "$work/occupancy" |
    sort >"$work/table"
if [ "$(wc -l <"$work/table")" -ne "$(wc -l <"$work/ptxas")" ]; then
    echo "not ok 3 - $(wc -l <"$work/table") of $(wc -l <"$work/ptxas") kernels got an occupancy"
elif awk '$6 < 1 { exit 1 }' "$work/table"; then
    echo "ok 3 - every kernel fits on an SM of every target"
else
    echo "not ok 3 - does not fit: $(awk '$6 < 1 { print $1, $2 }' "$work/table" | tr '\n' ';')"
fi
{
    echo "# nvcc $version; kernel, architecture, registers, threads, dynamic shared memory, blocks on an SM"
    cat "$work/table"
} >"$work/new"
if [ "${2:-}" = -u ]; then
    cp "$work/new" "$golden"
    exit 0
fi
if ! head -1 "$golden" | grep -q "nvcc $version;"; then
    echo "ok 4 - golden resources # SKIP they hold for $(head -1 "$golden" | cut -c3-16), this is nvcc $version"
elif diff "$golden" "$work/new" >"$work/diff"; then
    echo "ok 4 - registers, shared memory and blocks are those of the golden file"
else
    echo "not ok 4 - resources changed; tests/gpu/check_resources.sh $build -u accepts"
    sed 's/^/# /' "$work/diff" | head -20
fi
echo "1..4"
