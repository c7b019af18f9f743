#!/usr/bin/env bash
# Laws of the host side of the kernels: number formats, division, work lists, tile orders, banks.
# usage: tests/gpu/check_laws.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t objects < <(find "$build/kernels/probe" -name '*.o' ! -name main.o)
# the sanitizers that the objects were built with, by the folder's name
flags=()
[[ $build == *san* ]] && flags=("-fsanitize=address,undefined")
if ! ${CC:-cc} -std=c11 -D_POSIX_C_SOURCE=200809L -Isim -Ikernels -iquote kernels/probe "${flags[@]}" tests/gpu/laws.c \
    "${objects[@]}" "$build"/kernels/reference_*.o "$build"/kernels/embedded_*.o "$build/libridge.a" \
    -o "$work/laws" -lcmocka -ljansson -lmd -lgsl -lgslcblas -lm -ldl -fopenmp 2>"$work/err"; then
    echo "not ok 1 - laws do not compile"
    grep -E 'error|undefined' "$work/err" | head -5 | sed 's/^/# /'
    exit 1
fi
CMOCKA_MESSAGE_OUTPUT=TAP "$work/laws"
