#!/usr/bin/env bash
# ridge-probe's own declarations of the CUDA driver, cuBLASLt and NCCL against the toolkit's headers,
# and the names that it looks up against the libraries that are here.
# usage: tests/gpu/check_abi.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
toolkit=
for folder in "$(cut -d' ' -f1 "$build/kernels/toolkit" 2>/dev/null)" "${CUDA_HOME:-}" /usr/local/cuda; do
    [ -e "$folder/include/cuda.h" ] && toolkit=$folder && break
done
if [ -z "$toolkit" ]; then
    echo "ok 1 - declarations # SKIP no CUDA toolkit here"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
headers="cuda.h cublasLt.h nccl.h" absent=
for header in $headers; do [ -e "$toolkit/include/$header" ] || absent=$header; done
if [ -n "$absent" ]; then
    echo "ok 1 - declarations # SKIP this toolkit has no $absent"
elif ${CC:-cc} -std=c11 -Isim -iquote kernels/probe -Ikernels -isystem "$toolkit/include" -fsyntax-only tests/gpu/abi.c 2>"$work/err"; then
    echo "ok 1 - constants, structs and calls are those of cuda.h, cublasLt.h and nccl.h"
else
    echo "not ok 1 - declarations differ from the toolkit's headers"
    grep error "$work/err" | head -10 | sed 's/^/# /'
fi
stub=$toolkit/lib64/stubs/libcuda.so
if [ ! -e "$stub" ]; then
    echo "ok 2 - driver names # SKIP no stub of libcuda"
else
    nm -D --defined-only "$stub" | awk '{ print $3 }' | sort -u >"$work/have"
    sed -n '/define RG_CUDA_CALLS/,/^$/s/.*X(\(cu[A-Za-z0-9_]*\),.*/\1/p' kernels/probe/driver.h | sort -u >"$work/want"
    missing=$(comm -23 "$work/want" "$work/have")
    if [ "$(wc -l <"$work/want")" -gt 40 ] && [ -z "$missing" ]; then
        echo "ok 2 - the driver exports all $(wc -l <"$work/want") names that are looked up"
    else
        echo "not ok 2 - not in libcuda: $(echo "$missing" | tr '\n' ' ')"
    fi
fi
echo "1..2"
