/* The guard's parts: errors of medians, verdicts, rules, baselines that keep what is yours,
 * history. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "fit/guard_history.h"
#include "guard_fixture.h"

static rg_arena *arena;
static rg_err err;

static int setup(void **state)
{
    (void)state;
    arena = rg_arena_new(256);
    err = (rg_err){0};
    return arena == NULL;
}

static char temporaries[16][64];
static int temporary_count;

static int teardown(void **state)
{
    (void)state;
    rg_arena_free(arena);
    for (int i = 0; i < 16; i++)
        if (temporaries[i][0] != 0)
            unlink(temporaries[i]);
    return 0;
}

static rg_run *run_of(const char *text)
{
    rg_run *run = NULL;
    assert_ok(rg_run_parse(arena, "inline", text, strlen(text), NULL, &run, &err));
    return run;
}

static const char *temporary(const char *ending, const char *text)
{
    char *p = temporaries[temporary_count++ % 16];
    snprintf(p, sizeof temporaries[0], "/tmp/ridge-unit-%ld-%d%s", (long)getpid(), temporary_count,
             ending);
    unlink(p);
    if (text != NULL) {
        FILE *file = fopen(p, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
    }
    return p;
}

/* One kernel k: n samples around centre (us) with a spread that has no trend. */
static const char *record(const char *head, const char *extra, double centre, int n)
{
    static const double pattern[] = {0, 1, -1, 0.5, -0.5, 1.5, -1.5, 0.2, -0.2, 0.8, -0.8, 0.3};
    const char *text = rg_arena_printf(arena, NULL,
                                       "{\"schema\": \"ridge.probe/1\"%s, \"kernels\": "
                                       "[{\"name\": \"k\"%s, \"samples_us\": [",
                                       head, extra);
    for (int i = 0; i < n; i++)
        text = rg_arena_printf(arena, NULL, "%s%s%.6f", text, i ? ", " : "",
                               centre * (1 + 0.005 * pattern[i % 12]));
    return rg_arena_printf(arena, NULL, "%s]}]}", text);
}

static rg_guard_result judge_with(const char *before, const char *after, rg_guard_options options)
{
    rg_baseline *base;
    rg_guard_result result;
    options.alpha = 0.005;
    assert_ok(rg_baseline_of_run(arena, run_of(before), "", &base, &err));
    assert_ok(rg_guard_judge(arena, run_of(after), base, &options, &result, &err));
    return result;
}

static rg_verdict judge(const char *before, const char *after)
{
    const rg_guard_result result = judge_with(before, after, (rg_guard_options){0});
    assert_int_equal(result.count, 1);
    return result.items[0];
}

static void slower_by_five_per_cent_is_regressed_and_faster_is_no_failure(void **state)
{
    (void)state;
    const char *base = record("", "", 100, 24);
    assert_int_equal(judge(base, record("", "", 105, 24)).kind, RG_REGRESSED);
    assert_int_equal(judge(base, record("", "", 95, 24)).kind, RG_FASTER);
    assert_int_equal(judge(base, record("", "", 100.3, 24)).kind, RG_SAME);
    const rg_guard_result faster = judge_with(base, record("", "", 80, 24), (rg_guard_options){0});
    assert_int_equal(rg_guard_exit(&faster, true), 0);
}

static void median_and_its_error_match_the_theory_for_normal_samples(void **state)
{
    (void)state;
    /* Error of the median of n normal values: 1.2533 s / sqrt(n) = 1.2533 * 0.01 / 10. */
    rg_rng rng;
    rg_rng_seed(&rng, 5, 5);
    const sim_plan plan = {.noise = 0.01, .samples = 100, .processes = 1, .kernels = 400};
    const rg_run *run = sim_run(arena, &plan, false, &rng);
    double square = 0;
    for (int i = 0; i < run->count; i++) {
        rg_side side;
        assert_ok(rg_side_of(arena, &run->entries[i], &side, &err));
        square += side.error * side.error * side.effective / 100 / 400; /* as if independent */
        assert_true(side.low <= side.centre && side.centre <= side.high);
    }
    assert_close(sqrt(square), 0.0012533, 0.15);
}

static void autocorrelation_time_of_an_autoregression(void **state)
{
    (void)state;
    /* (1 + 0.5) / (1 - 0.5) = 3 */
    enum { N = 4000 };
    static double x[N], scratch[N];
    rg_rng rng;
    rg_rng_seed(&rng, 9, 9);
    for (int i = 0; i < N; i++)
        x[i] = (i > 0 ? 0.5 * x[i - 1] : 0) + rg_rng_normal(&rng);
    double lag1;
    assert_close(rg_stat_autocorrelation_time(x, N, scratch, &lag1), 3, 0.2);
    assert_close(lag1, 0.5, 0.1);
}

static void holm_by_hand(void **state)
{
    (void)state;
    /* sorted 0.01 0.02 0.03 0.5: 0.04, max(0.04, 0.06), max(0.06, 0.06), 0.5 */
    const double p[4] = {0.03, 0.5, 0.01, 0.02};
    double adjusted[4];
    int order[4];
    rg_stat_holm(p, 4, adjusted, order);
    assert_close(adjusted[2], 0.04, 1e-12);
    assert_close(adjusted[3], 0.06, 1e-12);
    assert_close(adjusted[0], 0.06, 1e-12);
    assert_close(adjusted[1], 0.5, 1e-12);
}

static void a_lower_clock_is_incomparable_not_regressed(void **state)
{
    (void)state;
    const rg_verdict v = judge(record("", ", \"clock_mhz\": 1980", 100, 24),
                               record("", ", \"clock_mhz\": 1200", 165, 24));
    assert_int_equal(v.kind, RG_INCOMPARABLE);
    assert_true(fabs(v.cycles_change) < 1e-6); /* 165 * 1200 = 100 * 1980 */
    /* ... but slower in cycles as well is regressed. */
    assert_int_equal(judge(record("", ", \"clock_mhz\": 1980", 100, 24),
                           record("", ", \"clock_mhz\": 1970", 106, 24))
                         .kind,
                     RG_REGRESSED);
}

static void a_throttled_run_is_inconclusive(void **state)
{
    (void)state;
    assert_int_equal(judge(record("", "", 100, 24),
                           record(", \"clock\": {\"throttle\": \"sw_power_cap\"}", "", 120, 24))
                         .kind,
                     RG_INCONCLUSIVE);
}

static void a_run_of_two_groups_of_which_one_matches_is_inconclusive(void **state)
{
    (void)state;
    const char *text =
        "{\"schema\": \"ridge.probe/1\", \"kernels\": [{\"name\": \"k\", \"samples_us\": [";
    for (int i = 0; i < 24; i++)
        text = rg_arena_printf(arena, NULL, "%s%s%.3f", text, i ? ", " : "",
                               (i % 5 < 2 ? 100 : 120) + 0.1 * (i % 7));
    text = rg_arena_printf(arena, NULL, "%s]}]}", text);
    assert_int_equal(judge(record("", "", 100, 24), text).kind, RG_INCONCLUSIVE);
    /* The clock falls late in the run: the last fifth is slower. */
    text = "{\"schema\": \"ridge.probe/1\", \"kernels\": [{\"name\": \"k\", \"samples_us\": [";
    for (int i = 0; i < 30; i++)
        text = rg_arena_printf(arena, NULL, "%s%s%.3f", text, i ? ", " : "",
                               (i < 6 ? 100 : 115) + 0.1 * (i % 7));
    text = rg_arena_printf(arena, NULL, "%s]}]}", text);
    assert_int_equal(judge(record("", "", 100, 24), text).kind, RG_INCONCLUSIVE);
}

static void other_device_driver_cache_and_tool_are_incomparable(void **state)
{
    (void)state;
    const char *base = record(", \"device\": {\"name\": \"NVIDIA H200\", \"driver\": \"570.86\"}",
                              ", \"cache\": \"cold\"", 100, 24);
    const char *same = record(", \"device\": {\"name\": \"NVIDIA  H200\", \"driver\": \"570.124\"}",
                              ", \"cache\": \"cold\"", 100, 24);
    const char *device = record(", \"device\": {\"name\": \"NVIDIA H100\", \"driver\": \"570.86\"}",
                                ", \"cache\": \"cold\"", 100, 24);
    const char *driver = record(", \"device\": {\"name\": \"NVIDIA H200\", \"driver\": \"580.1\"}",
                                ", \"cache\": \"cold\"", 100, 24);
    const char *cache = record(", \"device\": {\"name\": \"NVIDIA H200\", \"driver\": \"570.86\"}",
                               ", \"cache\": \"warm\"", 100, 24);
    assert_int_equal(judge(base, same).kind, RG_SAME);
    assert_int_equal(judge(base, device).kind, RG_INCOMPARABLE);
    assert_int_equal(judge(base, driver).kind, RG_INCOMPARABLE);
    assert_int_equal(judge(base, cache).kind, RG_INCOMPARABLE);
    const rg_guard_result across =
        judge_with(base, driver, (rg_guard_options){.across = RG_ACROSS_DRIVER});
    assert_int_equal(across.items[0].kind, RG_SAME);
    const rg_guard_result apart = judge_with(base, device, (rg_guard_options){0});
    assert_int_equal(rg_guard_exit(&apart, false), 4);
}

static void missing_and_new_kernels_are_named(void **state)
{
    (void)state;
    const rg_guard_result r = judge_with(
        "kernel,time_us\na,1\na,1.01\na,1.02\nb,2\nb,2.01\nb,2.02\n",
        "kernel,time_us\nb,2\nb,2.01\nb,2.02\nc,3\nc,3.01\nc,3.02\n", (rg_guard_options){0});
    assert_int_equal(r.counts[RG_MISSING], 1);
    assert_int_equal(r.counts[RG_NEW], 1);
    assert_int_equal(r.counts[RG_SAME], 1);
    assert_string_equal(r.items[0].kernel, "a"); /* worst first */
    assert_int_equal(rg_guard_exit(&r, false), 4);
}

static void a_single_value_is_judged_by_an_assumed_noise(void **state)
{
    (void)state;
    /* Two values of 5 % each: error 7.1 %, so 10 % says nothing and 100 % does. */
    assert_int_equal(judge("kernel,time_us\nk,100\n", "kernel,time_us\nk,110\n").kind,
                     RG_INCONCLUSIVE);
    assert_int_equal(judge("kernel,time_us\nk,100\n", "kernel,time_us\nk,200\n").kind,
                     RG_REGRESSED);
}

static const char *collective(int phase, double outlier, double slower)
{
    const char *text =
        "# nThread 1 nGpus 4 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20\n"
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
    for (int i = 0; i < 24; i++) {
        const double out = 20 * (1 + 0.004 * ((i + phase) * 7 % 5 - 2)),
                     in = 20 * (1 + 0.004 * ((i + phase) * 5 % 7 - 3));
        text = rg_arena_printf(arena, NULL, "%s%d %d float sum -1 %.3f 1.0 1.5 0 %.3f 1.0 1.5 0\n",
                               text, 8 << i, 2 << i,
                               out * (i == 11 ? outlier : 1) * (i >= 20 ? slower : 1),
                               in * (i >= 20 ? slower : 1));
    }
    return text;
}

static void one_outlying_mean_of_a_collective_is_no_regression(void **state)
{
    (void)state;
    rg_guard_result r =
        judge_with(collective(0, 1, 1), collective(1, 12, 1), (rg_guard_options){0});
    assert_int_equal(r.counts[RG_REGRESSED], 0);
    assert_int_equal(r.items[0].kind, RG_INCONCLUSIVE);
    assert_non_null(strstr(r.items[0].reason, "outlier"));
    r = judge_with(collective(0, 1, 1), collective(1, 1, 1.15), (rg_guard_options){0});
    assert_int_equal(r.counts[RG_REGRESSED], 8); /* four sizes, both halves */
}

static void rates_are_better_when_higher(void **state)
{
    (void)state;
    const char *base =
        "kernel,time (TFLOPS)\nk,500\nk,501\nk,499\nk,500\nk,500.5\nk,499.5\nk,500\nk,501\n";
    const char *less =
        "kernel,time (TFLOPS)\nk,400\nk,401\nk,399\nk,400\nk,400.5\nk,399.5\nk,400\nk,401\n";
    assert_int_equal(judge(base, less).kind, RG_REGRESSED);
    assert_int_equal(judge(less, base).kind, RG_FASTER);
}

static void wrong_results_and_broken_rules_are_regressions(void **state)
{
    (void)state;
    const char *path =
        temporary(".yaml", "default: {max_spill_bytes: 0 B}\n"
                           "kernels:\n"
                           "  - {kernel: 'k*', max_registers: 64, max_bytes_ratio: 1.05}\n");
    rg_rules rules;
    assert_ok(rg_rules_load(arena, path, &rules, &err));
    const rg_guard_options options = {.rules = &rules, .alpha = 0.005};
    const struct {
        const char *extra;
        rg_verdict_kind kind;
    } cases[] = {{", \"registers\": 64, \"spill_bytes\": 0", RG_SAME},
                 {", \"registers\": 65", RG_REGRESSED},
                 {", \"spill_bytes\": 4", RG_REGRESSED},
                 {", \"model_bytes\": 1000, \"dram_bytes\": 1040", RG_SAME},
                 {", \"model_bytes\": 1000, \"dram_bytes\": 1060", RG_REGRESSED},
                 {", \"check\": \"failed\"", RG_REGRESSED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rg_guard_result r;
        assert_ok(rg_guard_judge(arena, run_of(record("", cases[i].extra, 100, 12)), NULL, &options,
                                 &r, &err));
        assert_int_equal(r.items[0].kind, cases[i].kind);
    }
}

static void rules_refuse_unknown_keys_with_the_line(void **state)
{
    (void)state;
    rg_rules rules;
    const char *path = temporary(".yaml", "default:\n  max_slowdwn: 2 %\n");
    assert_int_equal(rg_rules_load(arena, path, &rules, &err), RG_ERR_INPUT);
    assert_int_equal(err.pos.line, 2);
    assert_non_null(strstr(err.text, "max_slowdown"));
}

static void patterns(void **state)
{
    (void)state;
    assert_true(rg_pattern_fits("gemm*", "gemm_bf16"));
    assert_true(rg_pattern_fits("*", ""));
    assert_true(rg_pattern_fits("g?mm", "gemm"));
    assert_true(rg_pattern_fits("*a*b", "xxaxxbab"));
    assert_false(rg_pattern_fits("gemm", "gemm_bf16"));
    assert_false(rg_pattern_fits("?", ""));
}

static bool every(void *context, const rg_base_entry *e)
{
    return context == NULL || rg_pattern_fits(context, e->kernel);
}

static const char *updated(const char *old, const char *run, char *only)
{
    rg_baseline *fresh;
    char *text;
    int changed, added;
    const char *path = temporary(".yaml", old);
    assert_ok(rg_baseline_of_run(arena, run_of(run), "here", &fresh, &err));
    assert_ok(rg_baseline_update(arena, path, old, old == NULL ? 0 : strlen(old), fresh, every,
                                 only, &text, &changed, &added, &err));
    return text;
}

static void baseline_reads_back_what_it_says(void **state)
{
    (void)state;
    const char *text =
        updated(NULL, record("", ", \"clock_mhz\": 1755, \"registers\": 72", 100, 24), NULL);
    rg_baseline *base;
    rg_side side;
    rg_run *run = run_of(record("", "", 100, 24));
    assert_ok(rg_baseline_load(arena, temporary(".yaml", text), &base, &err));
    assert_ok(rg_side_of(arena, &run->entries[0], &side, &err));
    assert_int_equal(base->count, 1);
    assert_close(base->entries[0].side.centre, side.centre, 1e-6);
    assert_close(base->entries[0].side.error, side.error, 1e-6);
    assert_close(base->entries[0].side.high, side.high, 1e-6);
    assert_close(base->entries[0].clock_hz, 1.755e9, 1e-6);
    assert_close(base->entries[0].registers, 72, 0);
    assert_string_equal(base->entries[0].from, "here");
}

static void update_keeps_limits_notes_comments_and_what_is_not_named(void **state)
{
    (void)state;
    static const char old[] = "# my baseline\n"
                              "schema: ridge.baseline/1\n"
                              "kernels:\n"
                              "  # loose on purpose\n"
                              "  - kernel: b   # the second one\n"
                              "    median: 10 us\n"
                              "    error: 1 %\n"
                              "    max_slowdown: 3 %   # agreed in review\n"
                              "    note: flaky\n"
                              "  - kernel: z\n"
                              "    median: 7 us   # untouched\n"
                              "    error: 1 %\n";
    static const char run[] =
        "kernel,time_us\na,5\na,5.1\na,5.2\nb,20\nb,20.1\nb,20.2\nz,9\nz,9.1\nz,9.2\n";
    char only[] = "b";
    const char *text = updated(old, run, only);
    assert_non_null(strstr(text, "# my baseline\n"));
    assert_non_null(strstr(
        text, "  # loose on purpose\n  - kernel: b   # the second one\n    median: 20.1 us\n"));
    assert_non_null(strstr(text, "    max_slowdown: 3 %   # agreed in review\n    note: flaky\n"));
    assert_non_null(strstr(text, "    median: 7 us   # untouched\n"));
    assert_null(strstr(text, "10 us"));
    assert_null(strstr(text, "\"a\""));
    /* A second update with the same run changes nothing: diffs stay quiet. */
    assert_string_equal(updated(text, run, only), text);
    /* A new kernel goes where it sorts. */
    char first[] = "a";
    const char *more = updated(text, run, first);
    assert_true(strstr(more, "kernel: \"a\"") < strstr(more, "kernel: b"));
}

static void an_update_of_all_renews_the_head_and_one_of_some_may_not(void **state)
{
    (void)state;
    const char *before = ", \"device\": {\"name\": \"x\", \"driver\": \"570.1\"}";
    const char *after = ", \"device\": {\"name\": \"x\", \"driver\": \"580.2\"}";
    const char *text = updated(NULL, record(before, "", 100, 12), NULL);
    assert_non_null(strstr(text, "driver: \"570.1\"\n"));
    const char *renewed = updated(text, record(after, "", 100, 12), NULL);
    assert_non_null(strstr(renewed, "driver: \"580.2\"\n"));
    assert_null(strstr(renewed, "570.1"));
    rg_baseline *fresh;
    char *out;
    int changed, added;
    const char *old = rg_arena_printf(arena, NULL, "%s  - kernel: z\n    median: 1 us\n", text);
    const char *path = temporary(".yaml", old);
    assert_ok(rg_baseline_of_run(arena, run_of(record(after, "", 100, 12)), "", &fresh, &err));
    assert_int_equal(rg_baseline_update(arena, path, old, strlen(old), fresh, every, NULL, &out,
                                        &changed, &added, &err),
                     RG_ERR_INPUT);
}

static void a_kernel_without_a_valid_sample_is_no_success(void **state)
{
    (void)state;
    const char *base = "kernel,time_us\na,1\na,1.01\n",
               *run = "kernel,time_us\na,1\na,1.01\nb,nan\n";
    rg_guard_result r = judge_with(base, run, (rg_guard_options){0});
    assert_int_equal(rg_guard_exit(&r, false), 4);
    r = judge_with("kernel,time_us\na,1\nb,2\n", run, (rg_guard_options){0});
    assert_int_equal(r.counts[RG_MISSING], 1);
}

static void baselines_refuse_mistakes_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line;
        const char *says;
    } cases[] = {
        {"schema: ridge.baseline/1\nkernels:\n  - kernel: a\n    medain: 1 us\n", 4, "median"},
        {"schema: ridge.baseline/1\nkernels:\n  - kernel: a\n    median: 12\n", 4, "12"},
        {"schema: ridge.baseline/7\nkernels: []\n", 1, "ridge.baseline/1"},
        {"schema: ridge.baseline/1\nkernels:\n  - kernel: a\n  - kernel: a\n", 4, "line 3"},
        {"schema: ridge.baseline/1\nkernels:\n  - kernel: a\n    median: -1 us\n", 3, "positive"},
        {"schema: ridge.baseline/1\n", 1, "kernels"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rg_baseline *base;
        err = (rg_err){0};
        assert_int_equal(rg_baseline_load(arena, temporary(".yaml", cases[i].text), &base, &err),
                         RG_ERR_INPUT);
        assert_int_equal(err.pos.line, cases[i].line);
        assert_non_null(strstr(err.text, cases[i].says));
    }
}

/* History ---------------------------------------------------------------------------------------
 */

static rg_history_series *after_commits(double step, int commits, double jump_at, int *count)
{
    rg_history *history;
    rg_history_series *series;
    rg_rng rng;
    rg_rng_seed(&rng, 77, 1);
    assert_ok(rg_history_open(arena, temporary(".db", NULL), &history, &err));
    for (int c = 0; c < commits; c++) {
        sim_plan plan = {.noise = 0.01,
                         .between = 0.002,
                         .samples = 30,
                         .processes = 1,
                         .kernels = 20,
                         .slowdown = pow(1 + step, c) - 1,
                         .slowed = 3};
        if (jump_at > 0 && c >= jump_at)
            plan.slowdown = 0.06;
        rg_run *run = sim_run(arena, &plan, true, &rng);
        rg_baseline *sides;
        bool known;
        char label[16];
        snprintf(label, sizeof label, "c%d", c);
        assert_ok(rg_baseline_of_run(arena, run, "", &sides, &err));
        assert_ok(rg_history_add(history, run, sides, label, label, &known, &err));
        assert_false(known);
        assert_ok(rg_history_add(history, run, sides, label, label, &known, &err));
        assert_true(known);
    }
    assert_ok(rg_history_load(arena, history, "", "", &series, count, &err));
    assert_ok(rg_history_analyse(arena, series, *count, 0.02, 0.005, &err));
    return series;
}

static void twelve_steps_of_one_per_cent_are_a_drift(void **state)
{
    (void)state;
    int count;
    const rg_history_series *s = after_commits(0.01, 12, 0, &count);
    assert_int_equal(count, 20);
    for (int i = 0; i < count; i++)
        assert_int_equal(s[i].drifted, i < 3);
    /* medians of the first and last three: 1.01^10 / 1.01 */
    assert_close(s[0].drift, pow(1.01, 9) - 1, 0.1);
    assert_int_equal(s[0].best_at, 0);
}

static void a_steady_history_has_neither_drift_nor_steps(void **state)
{
    (void)state;
    int count;
    const rg_history_series *s = after_commits(0, 24, 0, &count);
    for (int i = 0; i < count; i++) {
        assert_false(s[i].drifted);
        assert_int_equal(s[i].change_count, 0);
    }
}

static void a_step_is_found_at_its_commit(void **state)
{
    (void)state;
    int count;
    const rg_history_series *s = after_commits(0, 20, 11, &count);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(s[i].change_count, 1);
        assert_string_equal(s[i].points[s[i].changes[0].at].label, "c11");
        assert_close(s[i].changes[0].ratio, 1.06, 0.01);
        assert_true(s[i].drifted);
    }
}

static void accepted_levels_are_the_new_reference(void **state)
{
    (void)state;
    rg_history *history;
    rg_history_series *series;
    int count;
    const char *path = temporary(".db", NULL);
    assert_ok(rg_history_open(arena, path, &history, &err));
    for (int c = 0; c < 16; c++) {
        rg_run *run = run_of(record("", "", c < 8 ? 100 : 110, 24));
        rg_baseline *sides;
        bool known;
        char label[16];
        snprintf(label, sizeof label, "c%d", c);
        assert_ok(rg_baseline_of_run(arena, run, "", &sides, &err));
        assert_ok(rg_history_add(history, run, sides, label, label, &known, &err));
        if (c == 8)
            assert_ok(rg_history_accept(history, "*", &err));
    }
    assert_ok(rg_history_load(arena, history, "", "", &series, &count, &err));
    assert_int_equal(series[0].count, 8); /* c8 to c15 */
    assert_ok(rg_history_analyse(arena, series, count, 0.02, 0.005, &err));
    assert_false(series[0].drifted);
}

static void a_file_that_is_no_history_is_refused(void **state)
{
    (void)state;
    rg_history *history;
    assert_int_equal(rg_history_open(arena, temporary(".db", "this is no database, of any kind\n"),
                                     &history, &err),
                     RG_ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(slower_by_five_per_cent_is_regressed_and_faster_is_no_failure),
        T(median_and_its_error_match_the_theory_for_normal_samples),
        T(autocorrelation_time_of_an_autoregression),
        T(holm_by_hand),
        T(a_lower_clock_is_incomparable_not_regressed),
        T(a_throttled_run_is_inconclusive),
        T(a_run_of_two_groups_of_which_one_matches_is_inconclusive),
        T(other_device_driver_cache_and_tool_are_incomparable),
        T(missing_and_new_kernels_are_named),
        T(a_single_value_is_judged_by_an_assumed_noise),
        T(one_outlying_mean_of_a_collective_is_no_regression),
        T(rates_are_better_when_higher),
        T(wrong_results_and_broken_rules_are_regressions),
        T(rules_refuse_unknown_keys_with_the_line),
        T(patterns),
        T(baseline_reads_back_what_it_says),
        T(update_keeps_limits_notes_comments_and_what_is_not_named),
        T(an_update_of_all_renews_the_head_and_one_of_some_may_not),
        T(a_kernel_without_a_valid_sample_is_no_success),
        T(baselines_refuse_mistakes_with_their_line),
        T(twelve_steps_of_one_per_cent_are_a_drift),
        T(a_steady_history_has_neither_drift_nor_steps),
        T(a_step_is_found_at_its_commit),
        T(accepted_levels_are_the_new_reference),
        T(a_file_that_is_no_history_is_refused),
#undef T
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
