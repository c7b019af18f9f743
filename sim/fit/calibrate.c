/* fit/calibrate.c: constants of the models from measured rows, with what they are worth. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/rng.h"
#include "core/text.h"

const char *rg_lsq_note_text(rg_lsq_note note)
{
    switch (note) {
    case RG_LSQ_AT_LOWER:
        return "at its lower bound";
    case RG_LSQ_AT_UPPER:
        return "at its upper bound";
    case RG_LSQ_UNIDENTIFIED:
        return "not identified by these rows";
    case RG_LSQ_ENTANGLED:
        return "not told apart from another";
    default:
        return "";
    }
}

rg_status rg_split_parse(rg_arena *arena, const char *text, uint64_t seed, rg_split *out,
                         rg_err *err)
{
    *out = (rg_split){.train_share = 0.7, .seed = seed};
    if (strcmp(text, "random") == 0)
        return RG_OK;
    if (strncmp(text, "random:", 7) == 0) {
        if (rg_text_to_real(text + 7, &out->train_share) && out->train_share > 0.0 &&
            out->train_share <= 1.0)
            return RG_OK;
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "split '%s': the fitted share is above 0 and at most 1", text);
    }
    if (strncmp(text, "regime:", 7) == 0) {
        const char *slash = strchr(text + 7, '/');
        if (slash && slash > text + 7 && slash[1]) {
            out->fit_rows = rg_arena_copy(arena, text + 7, (size_t)(slash - text - 7), err);
            out->test_rows = rg_arena_strdup(arena, slash + 1, err);
            return out->fit_rows && out->test_rows ? RG_OK : RG_ERR_LIMIT;
        }
    }
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                   "split '%s' is not known; write random, random:0.7 or regime:m<=256/m>1024",
                   text);
}

/* Whether "column<=value" holds of a row. */
static rg_status holds(const rg_measured_table *table, const rg_measured_row *row,
                       const char *condition, bool *out, rg_err *err)
{
    const size_t name = strcspn(condition, "<>=");
    const char *operation = condition + name;
    const size_t width = strspn(operation, "<>=");
    double limit;
    if (width < 1 || width > 2 || !rg_text_to_real(operation + width, &limit))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "condition '%s' is not one; write column<=number", condition);
    for (int i = 0; i < table->columns; i++) {
        if (strlen(table->column[i]) != name || strncmp(table->column[i], condition, name) != 0)
            continue;
        double value;
        if (!rg_text_to_real(row->fields[i], &value))
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "column '%s' holds no numbers",
                           table->column[i]);
        const bool equal = operation[width - 1] == '=' && value == limit;
        *out = equal || (operation[0] == '<' && value < limit) ||
               (operation[0] == '>' && value > limit);
        return RG_OK;
    }
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "condition '%s' names no column of the table",
                   condition);
}

rg_status rg_split_row(const rg_split *split, const rg_measured_table *table,
                       const rg_measured_row *row, bool *fitted, bool *tested, rg_err *err)
{
    if (split->fit_rows) {
        RG_TRY(holds(table, row, split->fit_rows, fitted, err));
        return holds(table, row, split->test_rows, tested, err);
    }
    uint64_t state = row->shape_hash ^ (split->seed * 0x9e3779b97f4a7c15u);
    const double draw = (double)(rg_rng_splitmix(&state) >> 11) * 0x1.0p-53;
    *fitted = draw < split->train_share;
    *tested = !*fitted;
    return RG_OK;
}

/* One group's fit under way. */
typedef struct fitting {
    rg_predictor *predictor;
    int group;
    const rg_measured_row **rows; /* fitted ones */
    size_t count;
    int all;                              /* constants of the group */
    double values[RG_LSQ_MAX_PARAMETERS]; /* of all */
    int index[RG_LSQ_MAX_PARAMETERS];     /* of the free ones among all */
    int free;
} fitting;

static void set_free(fitting *f, const double *x)
{
    double values[RG_LSQ_MAX_PARAMETERS];
    memcpy(values, f->values, sizeof values);
    for (int j = 0; x && j < f->free; j++)
        values[f->index[j]] = x[j];
    rg_predict_set(f->predictor, f->group, values);
}

static void log_errors(void *context, const double *x, double *residual)
{
    fitting *f = context;
    set_free(f, x);
    for (size_t i = 0; i < f->count; i++)
        residual[i] = log(rg_predict_seconds(f->predictor, f->rows[i]) / f->rows[i]->seconds);
}

static bool is_listed(const char *const *list, const char *name)
{
    for (; list && *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* A constant that no row feels, however far it moves, belongs to something that is not in the table
 * (quantisation of 16-bit products, say). */
static bool is_felt(fitting *f, const rg_lsq_parameter *p, int at, double *scratch)
{
    const double kept = f->values[at];
    const double probes[2] = {p->lower, p->upper};
    bool felt = false;
    double *base = scratch, *moved = scratch + f->count;
    f->free = 0;
    log_errors(f, NULL, base);
    for (int i = 0; i < 2 && !felt; i++) {
        f->values[at] = probes[i];
        log_errors(f, NULL, moved);
        for (size_t r = 0; r < f->count && !felt; r++)
            felt = fabs(moved[r] - base[r]) > 1e-12;
    }
    f->values[at] = kept;
    return felt;
}

static rg_status refuse(const rg_calibration *c, const rg_lsq_parameter *p,
                        const rg_lsq_estimate *e, const rg_lsq_parameter *partner, rg_err *err)
{
    const char *group = rg_predict_group_name(c->group);
    if (e->note == RG_LSQ_ENTANGLED && partner)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "these rows cannot tell constant '%s.%s' from '%s.%s'; measure shapes that "
                       "do, hold one with --hold %s, or let priors stand with --prior",
                       group, p->name, group, partner->name, p->name);
    return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                   "these rows cannot identify constant '%s.%s'; measure shapes that depend on it, "
                   "hold it with --hold %s, or let priors stand with --prior",
                   group, p->name, p->name);
}

/* The most informative of the fitted rows: D-optimal for the constants' present values. */
static rg_status choose_few(rg_arena *arena, fitting *f, const rg_lsq_problem *problem, int few,
                            rg_calibration *out, rg_err *err)
{
    if ((size_t)few >= f->count)
        return RG_OK;
    double start[RG_LSQ_MAX_PARAMETERS];
    for (int j = 0; j < problem->parameters; j++)
        start[j] = problem->parameter[j].start;
    double *scratch = RG_NEW(arena, double, 2 * f->count, err);
    double *jacobian = RG_NEW(arena, double, f->count *(size_t)problem->parameters, err);
    int *chosen = RG_NEW(arena, int, few, err);
    out->chosen = RG_NEW(arena, const rg_measured_row *, few, err);
    if (!scratch || !jacobian || !chosen || !out->chosen)
        return RG_ERR_LIMIT;
    rg_lsq_jacobian(problem, start, scratch, jacobian);
    /* Repeats that L2 serves say little about the operators of a pass, which come cold. */
    for (size_t i = 0; i < f->count; i++)
        if (f->rows[i]->residency && strcmp(f->rows[i]->residency, "l2") == 0)
            memset(jacobian + i * (size_t)problem->parameters, 0,
                   (size_t)problem->parameters * sizeof *jacobian);
    RG_TRY(rg_lsq_choose(arena, jacobian, f->count, problem->parameters, NULL, few, chosen, err));
    for (int i = 0; i < few; i++)
        out->chosen[i] = f->rows[chosen[i]];
    out->chosen_count = few;
    f->rows = out->chosen;
    f->count = (size_t)few;
    return RG_OK;
}

/* Over the rows of one size class (NULL: all), those served from L2 left out. */
static rg_status errors_of(rg_arena *arena, const rg_predictor *predictor,
                           const rg_measured_row **rows, size_t count, const char *size_class,
                           rg_error_summary *out, rg_err *err)
{
    *out = (rg_error_summary){0};
    if (count == 0)
        return RG_OK;
    double *predicted = RG_NEW(arena, double, 3 * count, err);
    if (!predicted)
        return RG_ERR_LIMIT;
    double *measured = predicted + count;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if ((rows[i]->residency && strcmp(rows[i]->residency, "l2") == 0) ||
            (size_class && strcmp(rows[i]->size_class, size_class) != 0))
            continue;
        predicted[n] = rg_predict_seconds(predictor, rows[i]);
        measured[n++] = rows[i]->seconds;
    }
    if (n > 0)
        *out = rg_stat_errors(predicted, measured, n, measured + count);
    return RG_OK;
}

static rg_status test_errors(rg_arena *arena, const rg_predictor *predictor,
                             const rg_measured_row **rows, size_t count, rg_calibration *out,
                             rg_err *err)
{
    RG_TRY(errors_of(arena, predictor, rows, count, NULL, &out->tested, err));
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (int c = 0; c < out->class_count && !known; c++)
            known = strcmp(out->classes[c].name, rows[i]->size_class) == 0;
        if (known || out->class_count == RG_MOST_CLASSES)
            continue;
        rg_class_errors *class = &out->classes[out->class_count++];
        class->name = rows[i]->size_class;
        RG_TRY(errors_of(arena, predictor, rows, count, class->name, &class->errors, err));
    }
    return RG_OK;
}

static rg_status fit_group(rg_arena *arena, fitting *f, const rg_measured_row **tested,
                           size_t tested_count, const rg_calibration_options *options,
                           rg_calibration *out, rg_err *err)
{
    const rg_measured_row **all_fitted = f->rows;
    const size_t all_count = f->count;
    rg_lsq_parameter *all = out->parameter;
    f->all = out->parameters = rg_predict_parameters(f->predictor, f->group, all);
    out->group = f->group;
    for (int i = 0; i < f->all; i++) {
        f->values[i] = all[i].start;
        out->estimate[i] = (rg_lsq_estimate){
            .value = all[i].start, .low = all[i].start, .high = all[i].start, .partner = -1};
    }
    double *scratch = RG_NEW(arena, double, 2 * f->count + 2, err);
    if (!scratch)
        return RG_ERR_LIMIT;
    rg_lsq_parameter free_parameters[RG_LSQ_MAX_PARAMETERS];
    int free = 0, index[RG_LSQ_MAX_PARAMETERS] = {0};
    for (int i = 0; i < f->all; i++) {
        out->held[i] = is_listed(options->hold, all[i].name) || !is_felt(f, &all[i], i, scratch);
        if (out->held[i])
            continue;
        index[free] = i;
        free_parameters[free++] = all[i];
    }
    memcpy(f->index, index, sizeof index);
    f->free = free;
    rg_lsq_problem problem = {.parameters = free,
                              .parameter = free_parameters,
                              .rows = f->count,
                              .model = log_errors,
                              .context = f,
                              .coordinate_passes = -1};
    if (free == 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "no constant of '%s' is free to be fitted",
                       rg_predict_group_name(f->group));
    if (options->few > 0)
        RG_TRY(choose_few(arena, f, &problem, options->few, out, err));
    if (options->choose_only)
        return RG_OK;
    problem.rows = f->count;
    rg_lsq_result result;
    RG_TRY(rg_lsq_fit(arena, &problem, &result, err));
    double best[RG_LSQ_MAX_PARAMETERS] = {0};
    for (int j = 0; j < free; j++) {
        rg_lsq_estimate e = result.estimate[j];
        const bool loose = e.note == RG_LSQ_UNIDENTIFIED || e.note == RG_LSQ_ENTANGLED;
        if (loose && !options->lean_on_prior)
            return refuse(out, &free_parameters[j], &e,
                          e.partner >= 0 ? &free_parameters[e.partner] : NULL, err);
        if (e.partner >= 0)
            e.partner = index[e.partner];
        out->estimate[index[j]] = e;
        best[j] = e.value;
    }
    set_free(f, best);
    out->scale = result.scale;
    out->fitted_rows = f->count;
    out->tested_rows = tested_count;
    if (options->few > 0) {
        RG_TRY(errors_of(arena, f->predictor, f->rows, f->count, NULL, &out->fitted, err));
        /* Whatever was not chosen is fair to test on. */
        const rg_measured_row **rest =
            RG_NEW(arena, const rg_measured_row *, all_count + tested_count, err);
        if (!rest)
            return RG_ERR_LIMIT;
        size_t count = 0;
        for (size_t i = 0; i < all_count; i++) {
            bool taken = false;
            for (int j = 0; j < out->chosen_count; j++)
                taken = taken || out->chosen[j] == all_fitted[i];
            if (!taken)
                rest[count++] = all_fitted[i];
        }
        for (size_t i = 0; i < tested_count; i++)
            rest[count++] = tested[i];
        out->tested_rows = count;
        return test_errors(arena, f->predictor, rest, count, out, err);
    }
    RG_TRY(errors_of(arena, f->predictor, f->rows, f->count, NULL, &out->fitted, err));
    return test_errors(arena, f->predictor, tested, tested_count, out, err);
}

/* Range of operators that the errors speak of. */
static void widen(rg_calibration *c, const rg_measured_row *row)
{
    const double work = row->collective         ? row->bytes
                        : row->op.flops.v > 0.0 ? row->op.flops.v
                                                : rg_op_bytes(&row->op).v;
    c->least_work = c->most_work > 0.0 ? fmin(c->least_work, work) : work;
    c->most_work = fmax(c->most_work, work);
}

rg_status rg_calibrate(rg_arena *arena, rg_predictor *predictor, const rg_measured_table *table,
                       const rg_calibration_options *options, rg_calibration *out, int capacity,
                       int *count, rg_err *err)
{
    *count = 0;
    const rg_measured_row **fitted = RG_NEW(arena, const rg_measured_row *, table->count, err);
    const rg_measured_row **tested = RG_NEW(arena, const rg_measured_row *, table->count, err);
    if (!fitted || !tested)
        return RG_ERR_LIMIT;
    for (int group = RG_PREDICT_COLLECTIVE; group < RG_KG_COUNT; group++) {
        if (options->groups && *options->groups &&
            !is_listed(options->groups, rg_predict_group_name(group)))
            continue;
        size_t usable = 0, fitted_count = 0, tested_count = 0;
        for (size_t i = 0; i < table->count; i++)
            usable +=
                table->rows[i].skip == RG_SKIP_NONE && rg_predict_group(&table->rows[i]) == group;
        if (usable == 0)
            continue;
        const double share =
            options->most_rows > 0 ? (double)options->most_rows / (double)usable : 1.0;
        for (size_t i = 0; i < table->count; i++) {
            const rg_measured_row *row = &table->rows[i];
            if (row->skip != RG_SKIP_NONE || rg_predict_group(row) != group)
                continue;
            bool in = false, test = false;
            RG_TRY(rg_split_row(&options->split, table, row, &in, &test, err));
            uint64_t state = row->shape_hash + 1;
            if (in && !rg_predict_elsewhere(row) &&
                (double)(rg_rng_splitmix(&state) >> 11) * 0x1.0p-53 < share)
                fitted[fitted_count++] = row;
            if (test)
                tested[tested_count++] = row;
        }
        if (*count == capacity)
            return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "more than '%d' groups in one table",
                           capacity);
        if (fitted_count == 0)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "the split leaves no rows of '%s' to fit",
                           rg_predict_group_name(group));
        fitting f = {.predictor = predictor, .group = group, .rows = fitted, .count = fitted_count};
        RG_TRY(fit_group(arena, &f, tested, tested_count, options, &out[*count], err));
        for (size_t i = 0; i < fitted_count; i++)
            widen(&out[*count], fitted[i]);
        for (size_t i = 0; i < tested_count; i++)
            widen(&out[*count], tested[i]);
        (*count)++;
    }
    if (*count == 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "'%s' has no rows that can be fitted",
                       table->path);
    return RG_OK;
}
