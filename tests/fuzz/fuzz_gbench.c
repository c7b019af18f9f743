/* Run records, corpus of gbench. */
// SPDX-License-Identifier: Apache-2.0
#include "fuzz_run.h"
