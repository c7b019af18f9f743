/* Run records, corpus of table. */
// SPDX-License-Identifier: Apache-2.0
#include "fuzz_run.h"
