/* cli/cmd_guard.c: did this change make a kernel less efficient? */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/guard_job.h"
#include "core/file.h"
#include "report/guard_out.h"

extern const rg_command rg_cmd_guard;

/* Inputs ----------------------------------------------------------------------------------------
 */

static rg_status rg_guard_run_options(const rg_guard_job *j, rg_run_options *out)
{
    out->unit = rg_arg_text(j->args, "unit");
    return RG_OK;
}

static rg_status rg_guard_load_run(rg_guard_job *j)
{
    rg_run_options options;
    RG_TRY(rg_guard_run_options(j, &options));
    for (int i = 0; i < rg_arg_operands(j->args); i++) {
        const char *path = rg_arg_operand(j->args, i);
        rg_run *run;
        RG_TRY(rg_run_load(j->arena, path, &options, &run, j->err));
        RG_TRY(rg_report_input(j->report, "run", path, j->err));
        if (i == 0) {
            RG_TRY(rg_file_sha256(path, j->digest, j->err));
            j->run = run;
        } else {
            RG_TRY(rg_run_merge(j->arena, j->run, run, j->err));
        }
    }
    if (j->run == NULL)
        return RG_OK;
    const char *commit = rg_arg_text(j->args, "commit");
    if (commit != NULL)
        j->run->commit = commit;
    char more[32] = "";
    if (rg_arg_operands(j->args) > 1)
        snprintf(more, sizeof more, " and %d repeats", rg_arg_operands(j->args) - 1);
    j->from = rg_arena_printf(j->arena, j->err, "%s sha256:%.16s%s%s%s%s%s%s%s, ridge %s",
                              j->run->path, j->digest, more, j->run->date[0] ? ", " : "",
                              j->run->date, j->run->commit[0] ? ", commit " : "", j->run->commit,
                              j->run->driver[0] ? ", driver " : "", j->run->driver, RG_VERSION);
    return j->from == NULL ? RG_ERR_LIMIT : RG_OK;
}

/* A baseline is ridge's own YAML, or any run record (then several are repeats). */
static rg_status rg_guard_load_base(rg_guard_job *j)
{
    const int count = rg_arg_count(j->args, "baseline");
    rg_run *run = NULL;
    rg_run_options options;
    RG_TRY(rg_guard_run_options(j, &options));
    for (int i = 0; i < count; i++) {
        const char *path = rg_arg_nth(j->args, "baseline", i);
        const size_t n = strlen(path);
        const bool yaml = (n > 5 && strcmp(path + n - 5, ".yaml") == 0) ||
                          (n > 4 && strcmp(path + n - 4, ".yml") == 0);
        if (yaml && !rg_file_exists(path) && rg_arg_flag(j->args, "update"))
            return RG_OK; /* to be made */
        RG_TRY(rg_report_input(j->report, "baseline", path, j->err));
        if (yaml && count > 1)
            return rg_fail(j->err, RG_ERR_USAGE, RG_NOWHERE,
                           "baseline '%s' is a YAML file and stands alone; only run records may be "
                           "given several times",
                           path);
        if (yaml)
            return rg_baseline_load(j->arena, path, &j->base, j->err);
        rg_run *one;
        RG_TRY(rg_run_load(j->arena, path, &options, &one, j->err));
        if (run == NULL)
            run = one;
        else
            RG_TRY(rg_run_merge(j->arena, run, one, j->err));
    }
    if (run == NULL)
        return RG_OK;
    if (run->skipped != NULL)
        return rg_fail(j->err, RG_ERR_INPUT, (rg_pos){run->path, 1, 1},
                       "the baseline was not measured: %s", run->skipped);
    return rg_baseline_of_run(j->arena, run, "run record", &j->base, j->err);
}

static rg_status rg_guard_load_rules(rg_guard_job *j)
{
    static const struct {
        const char *name;
        unsigned bit;
    } across[] = {{"device", RG_ACROSS_DEVICE}, {"driver", RG_ACROSS_DRIVER},
                  {"clock", RG_ACROSS_CLOCK},   {"cache", RG_ACROSS_CACHE},
                  {"tool", RG_ACROSS_TOOL},     {"ecc", RG_ACROSS_ECC}};
    const char *rules = rg_arg_text(j->args, "rules"), *hw = rg_arg_text(j->args, "hw");
    j->rules = (rg_rules){.defaults = rg_limits_default()};
    if (rules != NULL) {
        RG_TRY(rg_report_input(j->report, "rules", rules, j->err));
        RG_TRY(rg_rules_load(j->arena, rules, &j->rules, j->err));
    }
    if (rg_arg_given(j->args, "max-slowdown")) {
        RG_TRY(rg_arg_quantity(j->args, "max-slowdown", RG_DIM_NONE,
                               &j->rules.defaults.max_slowdown, j->err));
        if (!(j->rules.defaults.max_slowdown >= 0 && j->rules.defaults.max_slowdown < 10))
            return rg_fail(j->err, RG_ERR_USAGE, RG_NOWHERE,
                           "option --max-slowdown '%s': give a share such as '2 %%'",
                           rg_arg_text(j->args, "max-slowdown"));
    }
    if (hw != NULL) {
        RG_TRY(rg_accel_load(j->arena, hw, &j->accel, j->err));
        RG_TRY(rg_report_input(j->report, "hardware", j->accel->path, j->err));
    }
    j->options = (rg_guard_options){.rules = &j->rules,
                                    .accel = j->accel,
                                    .require_locked = rg_arg_flag(j->args, "require-locked"),
                                    .only = rg_arg_text(j->args, "only")};
    RG_TRY(rg_arg_real(j->args, "alpha", 1e-9, 0.5, &j->options.alpha, j->err));
    for (int i = 0; i < rg_arg_count(j->args, "across"); i++) {
        const char *name = rg_arg_nth(j->args, "across", i);
        unsigned bit = 0;
        for (size_t k = 0; k < sizeof across / sizeof across[0]; k++)
            if (strcmp(across[k].name, name) == 0)
                bit = across[k].bit;
        if (bit == 0)
            return rg_fail(
                j->err, RG_ERR_USAGE, RG_NOWHERE,
                "option --across '%s': known are device, driver, clock, cache, tool, ecc", name);
        j->options.across |= bit;
    }
    return RG_OK;
}

/* Update ----------------------------------------------------------------------------------------
 */

static bool rg_guard_is_named(void *context, const rg_base_entry *entry)
{
    const rg_guard_job *j = context;
    return (entry->side.usable || isfinite(entry->registers)) &&
           (j->options.only == NULL || rg_pattern_fits(j->options.only, entry->kernel));
}

static rg_status rg_guard_update(rg_guard_job *j)
{
    if (rg_arg_count(j->args, "baseline") != 1 || j->run == NULL)
        return rg_fail(j->err, RG_ERR_USAGE, RG_NOWHERE,
                       "--update needs a run and one --baseline FILE.yaml to write");
    const char *path = rg_arg_text(j->args, "baseline");
    const size_t n = strlen(path);
    if (!(n > 5 && strcmp(path + n - 5, ".yaml") == 0) &&
        !(n > 4 && strcmp(path + n - 4, ".yml") == 0))
        return rg_fail(j->err, RG_ERR_USAGE, RG_NOWHERE,
                       "--update writes YAML; '%s' does not end in .yaml", path);
    char *old = NULL, *text;
    size_t length = 0;
    int changed, added;
    rg_baseline *fresh;
    if (j->base != NULL) {
        const char *const pairs[][3] = {{"device", j->base->device, j->run->device},
                                        {"tool", j->base->tool, j->run->tool}};
        for (int i = 0; i < 2; i++)
            if (pairs[i][1][0] != '\0' && pairs[i][2][0] != '\0' &&
                strcmp(pairs[i][1], pairs[i][2]) != 0)
                return rg_fail(
                    j->err, RG_ERR_INPUT, (rg_pos){path, 1, 1},
                    "the baseline is of %s '%s', the run of '%s'; keep one baseline for each",
                    pairs[i][0], pairs[i][1], pairs[i][2]);
        RG_TRY(rg_file_read(j->arena, path, 64u << 20, &old, &length, j->err));
    }
    RG_TRY(rg_baseline_of_run(j->arena, j->run, j->from, &fresh, j->err));
    RG_TRY(rg_baseline_update(j->arena, path, old, length, fresh, rg_guard_is_named, j, &text,
                              &changed, &added, j->err));
    rg_out_file file;
    RG_TRY(rg_out_open(&file, path, j->err));
    fputs(text, file.stream);
    RG_TRY(rg_out_commit(&file, j->err));
    rg_report_line(j->report, "%s: %d kernels rewritten, %d added, all else as it was", path,
                   changed, added);
    rg_report_json(j->report, "updated", json_integer(changed));
    rg_report_json(j->report, "added", json_integer(added));
    return RG_OK;
}

/* History ---------------------------------------------------------------------------------------
 */

static rg_status rg_guard_history(rg_guard_job *j)
{
    const char *path = rg_arg_text(j->args, "history");
    RG_TRY(rg_history_open(j->arena, path, &j->history, j->err));
    if (j->run != NULL) {
        rg_baseline *sides;
        bool known;
        const char *label = j->run->commit[0] != '\0' ? j->run->commit : j->digest;
        RG_TRY(rg_baseline_of_run(j->arena, j->run, "", &sides, j->err));
        RG_TRY(rg_history_add(j->history, j->run, sides, label, j->digest, &known, j->err));
        if (known)
            rg_report_assume(j->report,
                             "this run is in the history already and was not added again");
    }
    if (rg_arg_given(j->args, "accept")) {
        const char *only = j->options.only;
        RG_TRY(rg_history_accept(j->history, only == NULL ? "*" : only, j->err));
    }
    RG_TRY(rg_history_load(j->arena, j->history, j->run == NULL ? "" : j->run->device,
                           j->run == NULL ? "" : j->run->tool, &j->series, &j->series_count,
                           j->err));
    return rg_history_analyse(j->arena, j->series, j->series_count,
                              2 * j->rules.defaults.max_slowdown, j->options.alpha, j->err);
}

/* Drift fails a kernel that the comparison with its baseline let pass. */
static rg_status rg_guard_apply_drift(rg_guard_job *j)
{
    if (j->run == NULL) { /* verdicts come from the history alone */
        j->result.items = RG_NEW(j->arena, rg_verdict, j->series_count, j->err);
        if (j->result.items == NULL)
            return RG_ERR_LIMIT;
        for (int i = 0; i < j->series_count; i++) {
            const rg_history_series *s = &j->series[i];
            if (j->options.only != NULL && !rg_pattern_fits(j->options.only, s->kernel))
                continue;
            rg_verdict *v = &j->result.items[j->result.count++];
            *v = (rg_verdict){.kind = RG_SAME,
                              .kernel = s->kernel,
                              .problem = s->problem,
                              .dtype = s->dtype,
                              .rate_unit = s->rate_unit,
                              .change = s->drift,
                              .change_low = NAN,
                              .change_high = NAN,
                              .cycles_change = NAN,
                              .tolerance = NAN,
                              .noise = s->noise,
                              .p_adjusted = s->p_drift,
                              .roofline_s = NAN,
                              .efficiency = NAN,
                              .efficiency_high = NAN,
                              .bytes_ratio = NAN,
                              .registers = NAN,
                              .spill_bytes = NAN,
                              .blocks_per_sm = NAN,
                              .clock_hz = NAN,
                              .reason = isnan(s->drift) ? "fewer than 6 runs: drift cannot be told"
                                                        : "no drift"};
        }
    }
    for (int i = 0; i < j->series_count; i++) {
        const rg_history_series *s = &j->series[i];
        rg_verdict *v = s->drifted ? rg_guard_verdict_of(j, s) : NULL;
        if (v == NULL || v->kind == RG_REGRESSED || v->kind == RG_MISSING)
            continue;
        v->kind = RG_REGRESSED;
        v->reason = rg_arena_printf(
            j->arena, j->err,
            "drift: %.1f %% slower than at '%s', %d runs ago, in steps that each passed (p %.2g); "
            "accept it with --accept",
            100 * s->drift, s->points[s->best_at].label, s->count - 1 - s->best_at, s->p_drift);
        if (v->reason == NULL)
            return RG_ERR_LIMIT;
    }
    rg_guard_sort(&j->result);
    return RG_OK;
}

/* Confirmation ----------------------------------------------------------------------------------
 */

/* Run the user's command with RIDGE_RUN naming the record to write and RIDGE_KERNELS the
 * candidates. */
static rg_status rg_guard_rerun(rg_guard_job *j)
{
    const char *command = rg_arg_text(j->args, "rerun");
    if (command == NULL || j->result.counts[RG_REGRESSED] == 0 || j->run == NULL)
        return RG_OK;
    char path[] = "/tmp/ridge-guard-XXXXXX";
    const int handle = mkstemp(path);
    if (handle < 0)
        return rg_fail(j->err, RG_ERR_IO, RG_NOWHERE, "no temporary file for the second run");
    close(handle);
    const char *kernels = "";
    for (int i = 0; i < j->result.count; i++)
        if (j->result.items[i].kind == RG_REGRESSED) {
            kernels = rg_arena_printf(j->arena, j->err, "%s%s%s", kernels, kernels[0] ? "\n" : "",
                                      j->result.items[i].kernel);
            if (kernels == NULL)
                return RG_ERR_LIMIT;
        }
    setenv("RIDGE_RUN", path, 1);
    setenv("RIDGE_KERNELS", kernels, 1);
    // NOLINTNEXTLINE(cert-env33-c): the user's own command line, as given
    const int code = system(command);
    rg_status status = RG_OK;
    rg_run *again = NULL;
    rg_guard_result second = {0};
    if (code == -1 || !WIFEXITED(code) || WEXITSTATUS(code) != 0)
        status =
            rg_fail(j->err, RG_ERR_DEVICE, RG_NOWHERE,
                    "the command of --rerun failed with '%d'; a regression cannot be confirmed",
                    code == -1 ? -1 : WEXITSTATUS(code));
    rg_run_options options;
    if (status == RG_OK)
        status = rg_guard_run_options(j, &options);
    if (status == RG_OK)
        status = rg_run_load(j->arena, path, &options, &again, j->err);
    unlink(path);
    RG_TRY(status);
    RG_TRY(rg_guard_judge(j->arena, again, j->base, &j->options, &second, j->err));
    for (int i = 0; i < j->result.count; i++) {
        rg_verdict *v = &j->result.items[i];
        if (v->kind != RG_REGRESSED)
            continue;
        const rg_verdict *w = NULL;
        for (int k = 0; k < second.count; k++)
            if (strcmp(second.items[k].kernel, v->kernel) == 0 &&
                strcmp(second.items[k].problem, v->problem) == 0 &&
                strcmp(second.items[k].dtype, v->dtype) == 0)
                w = &second.items[k];
        const bool confirmed = w != NULL && w->kind == RG_REGRESSED;
        v->reason = rg_arena_printf(j->arena, j->err, "%s; %s by a second run (%s)", v->reason,
                                    confirmed ? "confirmed" : "not confirmed",
                                    w == NULL ? "not measured" : w->reason);
        if (v->reason == NULL)
            return RG_ERR_LIMIT;
        if (!confirmed)
            v->kind = RG_INCONCLUSIVE;
    }
    rg_guard_sort(&j->result);
    return RG_OK;
}

/* Answer -------------------------------------------------------------------------------------- */

static rg_status rg_guard_side_files(rg_guard_job *j)
{
    static const rg_run nothing = {.path = "",
                                   .tool = "ridge guard",
                                   .device = "",
                                   .driver = "",
                                   .date = "",
                                   .command = "",
                                   .commit = "",
                                   .ecc = "",
                                   .clocks = ""};
    const rg_run *run = j->run == NULL ? &nothing : j->run;
    const char *junit = rg_arg_text(j->args, "junit"), *markdown = rg_arg_text(j->args, "markdown"),
               *gitlab = rg_arg_text(j->args, "gitlab");
    if (junit != NULL)
        RG_TRY(rg_guard_write_junit(junit, run, &j->result, j->err));
    if (markdown != NULL)
        RG_TRY(rg_guard_write_markdown(markdown, run, &j->result, j->err));
    if (gitlab != NULL)
        RG_TRY(rg_guard_write_gitlab(gitlab, &j->result, j->err));
    if (rg_arg_flag(j->args, "github"))
        rg_guard_print_github(stderr, &j->result);
    return RG_OK;
}

static rg_status rg_guard_answer(const rg_guard_job *j)
{
    switch (rg_guard_exit(&j->result, rg_arg_flag(j->args, "strict"))) {
    case 1:
        return RG_ERR_NO;
    case 3:
        return RG_ERR_UNSURE;
    case 4:
        return RG_ERR_APART;
    default:
        return RG_OK;
    }
}

static rg_status rg_guard_skip(rg_guard_job *j)
{
    rg_report_line(j->report, "Skipped: %s", j->run->skipped);
    rg_report_text(j->report, "skipped", "skipped", j->run->skipped);
    rg_report_json(j->report, "counts", json_object());
    rg_report_json(j->report, "verdicts", json_array());
    RG_TRY(rg_arg_write(j->args, j->report, NULL, j->err));
    return RG_ERR_SKIP;
}

static rg_status rg_guard_main(rg_arena *arena, const rg_args *args, rg_err *err)
{
    rg_guard_job *j = RG_NEW(arena, rg_guard_job, 1, err);
    if (j == NULL)
        return RG_ERR_LIMIT;
    j->arena = arena;
    j->args = args;
    j->err = err;
    RG_TRY(rg_arg_report(arena, args, 1, &j->report, err));
    const bool history = rg_arg_given(args, "history");
    if (rg_arg_operands(args) == 0 && !history)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "no run given; 'ridge guard RUN --baseline FILE', or --history FILE alone");
    RG_TRY(rg_guard_load_rules(j));
    RG_TRY(rg_guard_load_run(j));
    RG_TRY(rg_guard_load_base(j));
    if (j->run != NULL && j->run->skipped != NULL)
        return rg_guard_skip(j);
    if (rg_arg_flag(args, "update")) {
        RG_TRY(rg_guard_update(j));
        if (history)
            RG_TRY(rg_guard_history(j));
        return rg_arg_write(args, j->report, NULL, err);
    }
    if (j->run != NULL && j->base == NULL && !history && !rg_arg_given(args, "rules"))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "nothing to judge by; give --baseline FILE, --rules FILE or --history FILE");
    if (history)
        RG_TRY(rg_guard_history(j));
    if (history && j->base == NULL && j->run != NULL)
        RG_TRY(rg_history_baseline(arena, j->series, j->series_count, j->digest, j->run, &j->base,
                                   err));
    if (j->run != NULL) {
        RG_TRY(rg_guard_judge(arena, j->run, j->base, &j->options, &j->result, err));
        if (j->result.count == 0)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "no kernel of '%s' fits --only '%s'",
                           j->run->path, j->options.only == NULL ? "*" : j->options.only);
        RG_TRY(rg_guard_rerun(j));
    }
    if (history)
        RG_TRY(rg_guard_apply_drift(j));
    rg_guard_report(j);
    RG_TRY(rg_guard_trend(j));
    RG_TRY(rg_arg_write(args, j->report, "verdicts", err));
    RG_TRY(rg_guard_side_files(j));
    return rg_guard_answer(j);
}

static const rg_option rg_guard_option_rows[] = {
    {"baseline", 'b', "FILE", NULL,
     "baseline YAML, or a run record to compare with (repeats allowed)", true},
    {"rules", 'r', "FILE", NULL, "limits by kernel pattern (YAML)", false},
    {"hw", 0, "NAME", NULL, "hardware description, for efficiencies against the roofline", false},
    {"history", 0, "FILE", NULL, "SQLite file: add this run, look for steps and slow drift", false},
    {"commit", 0, "NAME", NULL, "what the run is called in the history and in baselines", false},
    {"accept", 0, NULL, NULL, "take the present level of the history as the new reference", false},
    {"update", 'u', NULL, NULL, "write the run into the baseline; notes and limits stay", false},
    {"only", 0, "PATTERN", NULL, "kernels to judge or update, with * and ?", false},
    {"max-slowdown", 0, "SHARE", "1 %", "slowdown below which nothing is said", false},
    {"alpha", 0, "P", "0.005", "chance of a false alarm over all kernels together", false},
    {"across", 0, "WHAT", NULL, "compare across device, driver, clock, cache, tool or ecc", true},
    {"require-locked", 0, NULL, NULL, "refuse runs whose clocks were not locked", false},
    {"strict", 0, NULL, NULL, "exit 3 when a kernel is inconclusive", false},
    {"rerun", 0, "COMMAND", NULL, "measure regressed kernels once more into $RIDGE_RUN", false},
    {"unit", 0, "UNIT", NULL, "unit of a table whose columns name none: ms, us, TFLOP/s, GB/s",
     false},
    {"junit", 0, "FILE", NULL, "write JUnit XML", false},
    {"markdown", 0, "FILE", NULL, "write a Markdown summary", false},
    {"github", 0, NULL, NULL, "print GitHub annotations on stderr", false},
    {"gitlab", 0, "FILE", NULL, "write a GitLab code quality report", false},
    {"trend", 0, "FILE", NULL, "draw the history of the worst kernels (.svg, .png, .pdf)", false},
    {0},
};

const rg_command rg_cmd_guard = {
    .name = "guard",
    .group = "measure",
    .summary = "did this change make a kernel less efficient?",
    .operands = "[RUN...]",
    .least_operands = 0,
    .most_operands = -1,
    .description =
        "Judges a run against a baseline, rules or its own history, one verdict for each kernel "
        "and "
        "problem: regressed, incomparable, missing, inconclusive, faster, new, ok. All are listed, "
        "worst "
        "first.\n\n"
        "RUN is a record of ridge-probe, nvbench, Google Benchmark, pytest-benchmark or hyperfine "
        "JSON, "
        "an nccl-tests log or JSON, Nsight Compute or Nsight Systems CSV, rocprof CSV, a PyTorch "
        "profiler trace, a result of a serving benchmark (vLLM, SGLang, genai-perf), or a table of "
        "times "
        "such as Triton's perf_report writes. Several RUNs are repeats in separate processes; from "
        "three "
        "on, the noise between processes is measured and no longer assumed.\n\n"
        "A kernel has regressed when all of this holds: its median is slower by more than its "
        "max_slowdown; a one-sided test says so after Holm's correction over all kernels; the 95 % "
        "intervals of the medians are disjoint; it is slower in cycles too, where clocks are "
        "known; "
        "nothing held the clock down; and the samples do not fall into two groups of which one "
        "matches "
        "the baseline. What is over the tolerance without all of these is inconclusive. A broken "
        "rule "
        "(min_efficiency, max_bytes_ratio, max_registers, max_spill_bytes, min_blocks_per_sm) and "
        "a wrong "
        "result are regressions as well. Gains never fail.\n\n"
        "With --history the run is added to a SQLite file, and the present level is compared with "
        "the "
        "best one ever held, so that many small steps are caught; without --baseline the last five "
        "runs "
        "are the baseline.\n\n"
        "Exit status: 0 no regression; 1 regressed; 2 usage or input; 3 inconclusive under "
        "--strict, or "
        "--rerun failed; 4 incomparable or missing kernels; 77 the run says that it was skipped.",
    .examples = "ridge guard run.json --baseline base.yaml --update\n"
                "ridge guard run.json --baseline base.yaml --hw h200-sxm --junit guard.xml\n"
                "ridge guard r1.json r2.json r3.json -b base.yaml --strict\n"
                "ridge guard run.json --history perf.db --commit $(git rev-parse --short HEAD)",
    .options = rg_guard_option_rows,
    .run = rg_guard_main,
};
