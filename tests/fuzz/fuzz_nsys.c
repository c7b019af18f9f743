/* Run records, corpus of nsys. */
// SPDX-License-Identifier: Apache-2.0
#include "fuzz_run.h"
