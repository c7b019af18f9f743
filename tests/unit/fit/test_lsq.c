/* Robust bounded least squares: known answers, wild rows, what the data cannot say. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "core/rng.h"
#include "fit/lsq.h"

enum { ROWS = 200 };

/* t = a + b x, measured with a = 3, b = 0.5 and 1 % of noise. */
typedef struct line {
    double x[ROWS], t[ROWS];
    bool use_intercept;
} line;

static line measured_line(double noise)
{
    line l = {.use_intercept = true};
    rg_rng rng;
    rg_rng_seed(&rng, 7, 0);
    for (int i = 0; i < ROWS; i++) {
        l.x[i] = 0.1 * (i + 1);
        l.t[i] = (3.0 + 0.5 * l.x[i]) * exp(noise * rg_rng_normal(&rng));
    }
    return l;
}

static void line_errors(void *context, const double *p, double *residual)
{
    const line *l = context;
    for (int i = 0; i < ROWS; i++)
        residual[i] = log((p[0] + p[1] * l->x[i]) / l->t[i]);
}

static rg_lsq_parameter two_parameters[2] = {{"a", 1.0, 0.1, 100.0, 0.0},
                                             {"b", 2.0, 0.01, 10.0, 0.0}};

static void finds_the_line_within_its_interval(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    line l = measured_line(0.01);
    const rg_lsq_problem problem = {.parameters = 2,
                                    .parameter = two_parameters,
                                    .rows = ROWS,
                                    .model = line_errors,
                                    .context = &l,
                                    .coordinate_passes = -1};
    rg_lsq_result r;
    rg_err err;
    assert_ok(rg_lsq_fit(arena, &problem, &r, &err));
    assert_true(r.estimate[0].low < 3.0 && 3.0 < r.estimate[0].high);
    assert_true(r.estimate[1].low < 0.5 && 0.5 < r.estimate[1].high);
    /* 1 % of noise over 200 rows: the interval is a few tenths of a percent, never ten percent. */
    assert_true(r.estimate[0].high / r.estimate[0].low < 1.05);
    assert_int_equal(r.estimate[0].note, RG_LSQ_FINE);
    assert_close(r.scale, 0.01, 0.2);
    rg_arena_free(arena);
}

static void one_wild_row_in_ten_moves_little(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    line l = measured_line(0.01);
    for (int i = 0; i < ROWS; i += 10)
        l.t[i] *= 5.0;
    const rg_lsq_problem problem = {.parameters = 2,
                                    .parameter = two_parameters,
                                    .rows = ROWS,
                                    .model = line_errors,
                                    .context = &l,
                                    .coordinate_passes = -1};
    rg_lsq_result r;
    rg_err err;
    assert_ok(rg_lsq_fit(arena, &problem, &r, &err));
    /* Plain least squares would be off by ln(5)/10 = 16 %. */
    assert_close(r.estimate[0].value, 3.0, 0.02);
    assert_close(r.estimate[1].value, 0.5, 0.02);
    rg_arena_free(arena);
}

static void no_effect(void *context, const double *p, double *residual)
{
    (void)p;
    line_errors(context, (const double[]){3.0, p[1]}, residual);
}

static void a_parameter_without_effect_is_not_identified(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    line l = measured_line(0.01);
    const rg_lsq_problem problem = {.parameters = 2,
                                    .parameter = two_parameters,
                                    .rows = ROWS,
                                    .model = no_effect,
                                    .context = &l,
                                    .coordinate_passes = -1};
    rg_lsq_result r;
    rg_err err;
    assert_ok(rg_lsq_fit(arena, &problem, &r, &err));
    assert_int_equal(r.estimate[0].note, RG_LSQ_UNIDENTIFIED);
    assert_int_equal(r.estimate[1].note, RG_LSQ_FINE);
    assert_close(r.estimate[1].value, 0.5, 0.01);
    rg_arena_free(arena);
}

static void only_product(void *context, const double *p, double *residual)
{
    line_errors(context, (const double[]){3.0, p[0] * p[1]}, residual);
}

static void a_product_of_two_cannot_be_told_apart(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    line l = measured_line(0.01);
    const rg_lsq_problem problem = {.parameters = 2,
                                    .parameter = two_parameters,
                                    .rows = ROWS,
                                    .model = only_product,
                                    .context = &l,
                                    .coordinate_passes = -1};
    rg_lsq_result r;
    rg_err err;
    assert_ok(rg_lsq_fit(arena, &problem, &r, &err));
    assert_int_equal(r.estimate[0].note, RG_LSQ_ENTANGLED);
    assert_int_equal(r.estimate[0].partner, 1);
    assert_close(r.estimate[0].value * r.estimate[1].value, 0.5, 0.01);
    rg_arena_free(arena);
}

static void a_value_on_its_bound_is_named(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    line l = measured_line(0.01);
    const rg_lsq_parameter tight[2] = {{"a", 1.0, 0.1, 2.0, 0.0}, {"b", 2.0, 0.01, 10.0, 0.0}};
    const rg_lsq_problem problem = {.parameters = 2,
                                    .parameter = tight,
                                    .rows = ROWS,
                                    .model = line_errors,
                                    .context = &l,
                                    .coordinate_passes = -1};
    rg_lsq_result r;
    rg_err err;
    assert_ok(rg_lsq_fit(arena, &problem, &r, &err));
    assert_int_equal(r.estimate[0].note, RG_LSQ_AT_UPPER);
    assert_true(r.estimate[0].value <= 2.0);
    rg_arena_free(arena);
}

static void a_prior_decides_only_where_rows_are_silent(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    line l = measured_line(0.01);
    const rg_lsq_parameter prior[2] = {{"a", 1.0, 0.1, 100.0, 0.3}, {"b", 2.0, 0.01, 10.0, 0.3}};
    rg_lsq_problem problem = {.parameters = 2,
                              .parameter = prior,
                              .rows = ROWS,
                              .model = line_errors,
                              .context = &l,
                              .coordinate_passes = -1};
    rg_lsq_result r;
    rg_err err;
    assert_ok(rg_lsq_fit(arena, &problem, &r, &err));
    assert_close(r.estimate[1].value, 0.5, 0.02);
    problem.model = only_product; /* start 1 x 2; the prior shares the way to 0.5 out evenly */
    assert_ok(rg_lsq_fit(arena, &problem, &r, &err));
    assert_close(r.estimate[0].value / 1.0, r.estimate[1].value / 2.0, 0.1);
    rg_arena_free(arena);
}

static void fewer_rows_than_parameters_are_refused(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    line l = measured_line(0.01);
    const rg_lsq_problem problem = {.parameters = 2,
                                    .parameter = two_parameters,
                                    .rows = 1,
                                    .model = line_errors,
                                    .context = &l};
    rg_lsq_result r;
    rg_err err;
    assert_int_equal(rg_lsq_fit(arena, &problem, &r, &err), RG_ERR_MODEL);
    rg_arena_free(arena);
}

static void the_ends_of_a_line_are_chosen_first(void **state)
{
    (void)state;
    /* D-optimal for a + b x on [-1, 1]: half of the points at each end (Fedorov, 1972). */
    rg_arena *arena = rg_arena_new(64);
    double jacobian[21 * 2];
    for (int i = 0; i < 21; i++) {
        jacobian[2 * i] = 1.0;
        jacobian[2 * i + 1] = -1.0 + 0.1 * i;
    }
    int chosen[2];
    rg_err err;
    assert_ok(rg_lsq_choose(arena, jacobian, 21, 2, NULL, 2, chosen, &err));
    assert_true((chosen[0] == 0 && chosen[1] == 20) || (chosen[0] == 20 && chosen[1] == 0));
    rg_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_line_within_its_interval),
        cmocka_unit_test(one_wild_row_in_ten_moves_little),
        cmocka_unit_test(a_parameter_without_effect_is_not_identified),
        cmocka_unit_test(a_product_of_two_cannot_be_told_apart),
        cmocka_unit_test(a_value_on_its_bound_is_named),
        cmocka_unit_test(a_prior_decides_only_where_rows_are_silent),
        cmocka_unit_test(fewer_rows_than_parameters_are_refused),
        cmocka_unit_test(the_ends_of_a_line_are_chosen_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
