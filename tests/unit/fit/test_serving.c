/* Little's law between stages, and which runs may be compared. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "fit/serving.h"

static void requests_decode_for_their_share_of_the_time(void **state)
{
    (void)state;
    /* 1 s before the first token, 99 tokens after it at 10 ms: 0.99 s of 1.99 s. */
    assert_close(rg_serving_decoding(64, 1.0, 0.010, 100), 64 * 0.99 / 1.99, 1e-12);
    assert_close(rg_serving_decoding(64, 1.0, 0.010, 1), 0.0, 0.0);
}

static void loads_a_fifth_apart_are_unlike(void **state)
{
    (void)state;
    assert_false(rg_serving_unlike(64, 52));
    assert_true(rg_serving_unlike(64, 51));
    assert_true(rg_serving_unlike(51, 64));
}

static void a_run_that_queued_is_flagged_and_not_compared(void **state)
{
    (void)state;
    char path[] = "/tmp/ridge-serving-XXXXXX";
    const int handle = mkstemp(path);
    assert_true(handle >= 0);
    FILE *file = fdopen(handle, "w");
    assert_non_null(file);
    /* Like load; 30 s of waiting for a first token; a rate that means 8 in flight, not 32; work in
     * progress; a model that is not there. */
    fputs("model_path,system,isl,osl,tp_size,concurrency,ttft_ms,tpot_ms,requests_per_s,wip\n"
          "x/Llama-3.1-70B,h200_sxm,1024,1024,8,32,150,15,,False\n"
          "x/Llama-3.1-70B,h200_sxm,1024,1024,8,32,30000,15,,False\n"
          "x/Llama-3.1-70B,h200_sxm,1024,1024,8,32,150,15,0.52,False\n"
          "x/Llama-3.1-70B,h200_sxm,1024,1024,8,32,150,15,,True\n"
          "x/No-Such-Model,h200_sxm,1024,1024,8,32,150,15,,False\n",
          file);
    fclose(file);
    rg_arena *arena = rg_arena_new(256);
    rg_serving_table t;
    rg_err err;
    assert_ok(rg_serving_compare(arena, path, &t, &err));
    static const rg_serving_skip want[5] = {RG_SERVING_COMPARED, RG_SERVING_UNLIKE_LOAD,
                                            RG_SERVING_UNLIKE_LOAD, RG_SERVING_UNFINISHED,
                                            RG_SERVING_UNKNOWN};
    assert_int_equal(t.count, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(t.runs[i].skip, want[i]);
    rg_arena_free(arena);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_decode_for_their_share_of_the_time),
        cmocka_unit_test(loads_a_fifth_apart_are_unlike),
        cmocka_unit_test(a_run_that_queued_is_flagged_and_not_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
