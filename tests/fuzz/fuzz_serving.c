/* Run records, corpus of serving. */
// SPDX-License-Identifier: Apache-2.0
#include "fuzz_run.h"
