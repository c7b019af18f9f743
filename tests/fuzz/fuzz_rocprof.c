/* Run records, corpus of rocprof. */
// SPDX-License-Identifier: Apache-2.0
#include "fuzz_run.h"
