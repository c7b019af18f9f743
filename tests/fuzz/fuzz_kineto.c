/* Run records, corpus of kineto. */
// SPDX-License-Identifier: Apache-2.0
#include "fuzz_run.h"
