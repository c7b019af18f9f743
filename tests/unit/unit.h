/* tests/unit/unit.h: what every unit test needs.
 *
 * Test names are claims. Wanted values come from a hand calculation, a paper or a measurement.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TESTS_UNIT_H
#define RG_TESTS_UNIT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/err.h"

/** Relative comparison; cmocka's own goes through float. */
#define assert_close(got, want, tolerance)                                                    \
    do {                                                                                      \
        const double got_ = (got), want_ = (want);                                            \
        if (!(fabs(got_ - want_) <= (tolerance)*fmax(fabs(want_), 1e-300))) {                 \
            print_error("%s:%d: got %.17g, want %.17g within %g\n", __FILE__, __LINE__, got_, \
                        want_, (double)(tolerance));                                          \
            fail();                                                                           \
        }                                                                                     \
    } while (0)

/** A call that must succeed; prints its error otherwise. Needs an rg_err named err. */
#define assert_ok(call)                                            \
    do {                                                           \
        if ((call) != RG_OK) {                                     \
            char text_[RG_ERR_TEXT_SIZE + 300];                    \
            rg_err_format(&err, text_, sizeof text_);              \
            print_error("%s:%d: %s\n", __FILE__, __LINE__, text_); \
            fail();                                                \
        }                                                          \
    } while (0)

/** Path of a file of the shared data beside the checkout, or skip the test, saying so. */
#define SHARED(path) ("../shared/" path)
#define skip_without(path)                  \
    do {                                    \
        struct stat stat_;                  \
        if (stat(path, &stat_) != 0) {      \
            print_message("no %s\n", path); \
            skip();                         \
        }                                   \
    } while (0)

#endif
