/* Run records, corpus of nccl. */
// SPDX-License-Identifier: Apache-2.0
#include "fuzz_run.h"
