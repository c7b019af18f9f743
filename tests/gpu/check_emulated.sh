#!/usr/bin/env bash
# The kernels' own source on the CPU emulation: every kernel against its reference in double, with
# lengths 0, 1, page - 1, page, page + 1, NaN in all that must not be read. Needs a C++ compiler.
# usage: tests/gpu/check_emulated.sh BUILD
# SPDX-License-Identifier: Apache-2.0
set -u
build=${1:-build}
# eight devices, so that ranks on several GPUs are run as well
RIDGE_EMU_DEVICES=8 "$build/ridge-probe" check --cuda-lib "$build/kernels/emu"
