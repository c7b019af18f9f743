/* Run records, corpus of probe. */
// SPDX-License-Identifier: Apache-2.0
#include "fuzz_run.h"
