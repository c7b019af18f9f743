/* Run records, corpus of nvbench. */
// SPDX-License-Identifier: Apache-2.0
#include "fuzz_run.h"
