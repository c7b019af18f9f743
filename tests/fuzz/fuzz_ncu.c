/* Run records, corpus of ncu. */
// SPDX-License-Identifier: Apache-2.0
#include "fuzz_run.h"
