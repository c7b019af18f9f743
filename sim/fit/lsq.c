/* fit/lsq.c: bounded, robust non-linear least squares on log error.
 *
 * Cauchy's loss c^2/2 ln(1 + (r/c)^2) through reweighting (P. W. Holland and R. E. Welsch, "Robust
 * regression using iteratively reweighted least-squares", Comm. Stat. A6, 1977); scale by 1.4826
 * times the median absolute residual. Rows that another kernel ran lie far off and count for
 * little.
 */
// SPDX-License-Identifier: Apache-2.0
#include "fit/lsq.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include <gsl/gsl_blas.h>
#include <gsl/gsl_eigen.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>

#include "core/stat.h"

/* 2.385 deviations: 95 % efficiency for a normal residual (Holland and Welsch, table 1). */
static const double cauchy_width = 2.385;
/* Range within which a value counts as lying on its bound. */
static const double bound_share = 0.01;
/* A parameter whose halving moves no row by this much in the mean is not identified. */
static const double least_sensitivity = 0.003;
/* Correlation beyond which two estimates cannot be told apart. */
static const double entangled_correlation = 0.995;

/* Stands for ln(error) of a row without a finite prediction. */
static const double no_prediction = 10.0;
/* Log error that one row is taken to have when it is weighed against a prior. */
static const double row_deviation = 0.1;

typedef struct fit_state {
    const rg_lsq_problem *problem;
    size_t all;       /* rows and, behind them, one line for each parameter's prior */
    double *x;        /* [parameters], natural values */
    double *residual; /* [all] */
    double *scratch;  /* [2 all] */
    int evaluations;
} fit_state;

static bool log_spaced(const rg_lsq_parameter *p)
{
    return p->lower > 0.0 && p->upper > 4.0 * p->lower;
}

static double to_share(const rg_lsq_parameter *p, double x)
{
    if (log_spaced(p))
        return log(x / p->lower) / log(p->upper / p->lower);
    return (x - p->lower) / (p->upper - p->lower);
}

static double from_share(const rg_lsq_parameter *p, double share)
{
    if (log_spaced(p))
        return p->lower * exp(share * log(p->upper / p->lower));
    return p->lower + share * (p->upper - p->lower);
}

/* Logistic map of the whole line onto the range. */
static double to_free(const rg_lsq_parameter *p, double x)
{
    double share = to_share(p, x);
    share = fmin(fmax(share, 1e-4), 1.0 - 1e-4);
    return log(share / (1.0 - share));
}

static double from_free(const rg_lsq_parameter *p, double u)
{
    return from_share(p, 1.0 / (1.0 + exp(-u)));
}

static void evaluate(fit_state *state)
{
    state->problem->model(state->problem->context, state->x, state->residual);
    state->evaluations++;
    for (size_t i = 0; i < state->problem->rows; i++)
        if (!isfinite(state->residual[i]))
            state->residual[i] = no_prediction;
    for (int j = 0; j < state->problem->parameters; j++) {
        const rg_lsq_parameter *p = &state->problem->parameter[j];
        state->residual[state->problem->rows + (size_t)j] =
            p->spread > 0.0 ? row_deviation * log(state->x[j] / p->start) / p->spread : 0.0;
    }
}

static int residuals_of(const gsl_vector *u, void *data, gsl_vector *f)
{
    fit_state *state = data;
    for (int j = 0; j < state->problem->parameters; j++)
        state->x[j] = from_free(&state->problem->parameter[j], gsl_vector_get(u, (size_t)j));
    evaluate(state);
    for (size_t i = 0; i < state->all; i++) /* f may be a column: strided */
        gsl_vector_set(f, i, state->residual[i]);
    return GSL_SUCCESS;
}

static double robust_scale(const double *residual, size_t n, double *scratch)
{
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabs(residual[i]);
    rg_stat_sort(scratch, n);
    return fmax(1.4826 * rg_stat_quantile_sorted(scratch, n, 0.5), 1e-4);
}

static double cauchy(double r, double width)
{
    const double x = r / width;
    return 0.5 * width * width * log1p(x * x);
}

static double mean_loss(const double *residual, size_t n, double width)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += cauchy(residual[i], width);
    return sum / (double)n;
}

static rg_status reweighted_rounds(fit_state *state, rg_err *err)
{
    const rg_lsq_problem *problem = state->problem;
    const size_t n = state->all, m = (size_t)problem->parameters;
    gsl_multifit_nlinear_parameters options = gsl_multifit_nlinear_default_parameters();
    options.trs = gsl_multifit_nlinear_trs_lm;
    options.scale = gsl_multifit_nlinear_scale_more;
    options.h_df = 1e-4; /* wide enough to see past rounding and small kinks */
    gsl_multifit_nlinear_workspace *work =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &options, n, m);
    gsl_vector *u = gsl_vector_alloc(m), *weight = gsl_vector_alloc(n);
    rg_status status = RG_OK;
    if (!work || !u || !weight) {
        status = rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory for a fit of '%zu' rows", n);
        goto done;
    }
    const int rounds = problem->rounds > 0 ? problem->rounds : 6;
    for (int round = 0; round < rounds; round++) {
        const double width =
            cauchy_width * robust_scale(state->residual, problem->rows, state->scratch);
        for (size_t i = 0; i < n; i++) {
            const double x = state->residual[i] / width;
            gsl_vector_set(weight, i, i < problem->rows ? 1.0 / (1.0 + x * x) : 1.0);
        }
        const double before = mean_loss(state->residual, n, width);
        double kept[RG_LSQ_MAX_PARAMETERS];
        memcpy(kept, state->x, m * sizeof(double));
        for (size_t j = 0; j < m; j++)
            gsl_vector_set(u, j, to_free(&problem->parameter[j], state->x[j]));
        gsl_multifit_nlinear_fdf system = {.f = residuals_of, .n = n, .p = m, .params = state};
        if (gsl_multifit_nlinear_winit(u, weight, &system, work) != GSL_SUCCESS)
            break;
        int info = 0;
        (void)gsl_multifit_nlinear_driver(12, 1e-4, 1e-6, 1e-6, NULL, NULL, &info, work);
        for (size_t j = 0; j < m; j++)
            state->x[j] = from_free(&problem->parameter[j],
                                    gsl_vector_get(gsl_multifit_nlinear_position(work), j));
        evaluate(state);
        const double after = mean_loss(state->residual, n, width);
        if (after > before) {
            memcpy(state->x, kept, m * sizeof(double));
            evaluate(state);
            break;
        }
        if (before - after < 1e-4 * before)
            break;
    }
done:
    gsl_multifit_nlinear_free(work);
    gsl_vector_free(u);
    gsl_vector_free(weight);
    return status;
}

static void coordinate_search(fit_state *state)
{
    const rg_lsq_problem *problem = state->problem;
    const size_t n = state->all;
    const int passes = problem->coordinate_passes < 0 ? 3 : problem->coordinate_passes;
    const double width =
        cauchy_width * robust_scale(state->residual, problem->rows, state->scratch);
    double best = mean_loss(state->residual, n, width);
    double step = 0.08;
    for (int pass = 0; pass < passes; pass++, step *= 0.5) {
        for (int j = 0; j < problem->parameters; j++) {
            const rg_lsq_parameter *p = &problem->parameter[j];
            for (int sign = -1; sign <= 1; sign += 2) {
                for (int move = 0; move < 4; move++) {
                    const double kept = state->x[j];
                    const double share = fmin(fmax(to_share(p, kept) + sign * step, 0.0), 1.0);
                    state->x[j] = from_share(p, share);
                    if (state->x[j] == kept)
                        break;
                    evaluate(state);
                    const double loss = mean_loss(state->residual, n, width);
                    if (loss < best * (1.0 - 1e-6)) {
                        best = loss;
                        continue;
                    }
                    state->x[j] = kept;
                    break;
                }
            }
        }
    }
    evaluate(state);
}

void rg_lsq_jacobian(const rg_lsq_problem *problem, const double *x, double *scratch, double *out)
{
    const size_t n = problem->rows;
    const int m = problem->parameters;
    double moved[RG_LSQ_MAX_PARAMETERS];
    for (int j = 0; j < m; j++) {
        memcpy(moved, x, (size_t)m * sizeof(double));
        const double h = 0.02;
        moved[j] = x[j] * (1.0 + h);
        problem->model(problem->context, moved, scratch);
        moved[j] = x[j] * (1.0 - h);
        problem->model(problem->context, moved, scratch + n);
        for (size_t i = 0; i < n; i++)
            out[i * (size_t)m + (size_t)j] = (scratch[i] - scratch[n + i]) / (2.0 * h);
    }
}

/* Intervals, sensitivities and notes from J^T J, J by ln(parameter). */
static rg_status judge(rg_arena *arena, fit_state *state, rg_lsq_result *out, rg_err *err)
{
    const rg_lsq_problem *problem = state->problem;
    const size_t n = problem->rows, m = (size_t)problem->parameters;
    double *jacobian = RG_NEW(arena, double, n *m, err);
    if (!jacobian)
        return RG_ERR_LIMIT;
    rg_lsq_jacobian(problem, state->x, state->scratch, jacobian);
    gsl_matrix *normal = gsl_matrix_calloc(m, m), *vectors = gsl_matrix_alloc(m, m);
    gsl_vector *values = gsl_vector_alloc(m);
    gsl_eigen_symmv_workspace *work = gsl_eigen_symmv_alloc(m);
    if (!normal || !vectors || !values || !work)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory to judge a fit");
    for (size_t a = 0; a < m; a++)
        for (size_t b = 0; b <= a; b++) {
            double sum = 0.0;
            for (size_t i = 0; i < n; i++)
                sum += jacobian[i * m + a] * jacobian[i * m + b];
            gsl_matrix_set(normal, a, b, sum);
            gsl_matrix_set(normal, b, a, sum);
        }
    double norm[RG_LSQ_MAX_PARAMETERS];
    for (size_t a = 0; a < m; a++)
        norm[a] = sqrt(gsl_matrix_get(normal, a, a));
    /* Correlation form, so that the eigenvalues do not depend on units; a floor keeps it regular.
     */
    for (size_t a = 0; a < m; a++)
        for (size_t b = 0; b < m; b++) {
            const double scale = fmax(norm[a], 1e-12) * fmax(norm[b], 1e-12);
            gsl_matrix_set(normal, a, b, a == b ? 1.0 : gsl_matrix_get(normal, a, b) / scale);
        }
    double cosine[RG_LSQ_MAX_PARAMETERS];
    int partner[RG_LSQ_MAX_PARAMETERS];
    for (size_t a = 0; a < m; a++) {
        cosine[a] = 0.0;
        partner[a] = -1;
        for (size_t b = 0; b < m; b++)
            if (b != a && fabs(gsl_matrix_get(normal, a, b)) > cosine[a]) {
                cosine[a] = fabs(gsl_matrix_get(normal, a, b));
                partner[a] = (int)b;
            }
    }
    gsl_eigen_symmv(normal, values, vectors, work);
    const double deviation = robust_scale(state->residual, n, state->scratch);
    for (size_t a = 0; a < m; a++) {
        const rg_lsq_parameter *p = &problem->parameter[a];
        double variance = 0.0;
        for (size_t e = 0; e < m; e++) {
            const double v = gsl_matrix_get(vectors, a, e);
            variance += v * v / fmax(gsl_vector_get(values, e), 1e-9);
        }
        rg_lsq_estimate *estimate = &out->estimate[a];
        estimate->value = state->x[a];
        estimate->sensitivity = norm[a] / sqrt((double)n);
        const double error = deviation * sqrt(variance) / fmax(norm[a], 1e-12);
        estimate->low = fmax(p->lower, state->x[a] * exp(-fmin(1.96 * error, 50.0)));
        estimate->high = fmin(p->upper, state->x[a] * exp(fmin(1.96 * error, 50.0)));
        estimate->partner = -1;
        const double share = to_share(p, state->x[a]);
        if (estimate->sensitivity < least_sensitivity)
            estimate->note = RG_LSQ_UNIDENTIFIED;
        else if (cosine[a] > entangled_correlation) {
            estimate->note = RG_LSQ_ENTANGLED;
            estimate->partner = partner[a];
        } else if (share < bound_share)
            estimate->note = RG_LSQ_AT_LOWER;
        else if (share > 1.0 - bound_share)
            estimate->note = RG_LSQ_AT_UPPER;
        else
            estimate->note = RG_LSQ_FINE;
    }
    out->scale = deviation;
    gsl_eigen_symmv_free(work);
    gsl_matrix_free(normal);
    gsl_matrix_free(vectors);
    gsl_vector_free(values);
    return RG_OK;
}

rg_status rg_lsq_fit(rg_arena *arena, const rg_lsq_problem *problem, rg_lsq_result *out,
                     rg_err *err)
{
    assert(problem->parameters > 0 && problem->parameters <= RG_LSQ_MAX_PARAMETERS);
    if (problem->rows < (size_t)problem->parameters)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "'%zu' rows cannot determine %d constants; measure at least %d shapes",
                       problem->rows, problem->parameters, 2 * problem->parameters);
    for (int j = 0; j < problem->parameters; j++) {
        const rg_lsq_parameter *p = &problem->parameter[j];
        if (!(p->start >= p->lower && p->start <= p->upper && p->lower < p->upper))
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "constant %s starts at '%g', outside %g to %g", p->name, p->start,
                           p->lower, p->upper);
    }
    memset(out, 0, sizeof *out);
    fit_state state = {.problem = problem};
    state.x = RG_NEW(arena, double, problem->parameters, err);
    state.all = problem->rows + (size_t)problem->parameters;
    state.residual = RG_NEW(arena, double, state.all, err);
    state.scratch = RG_NEW(arena, double, 2 * state.all, err);
    if (!state.x || !state.residual || !state.scratch)
        return RG_ERR_LIMIT;
    for (int j = 0; j < problem->parameters; j++)
        state.x[j] = problem->parameter[j].start;
    evaluate(&state);
    for (size_t i = 0; i < problem->rows; i++)
        if (state.residual[i] >= no_prediction)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "row %zu has no finite prediction with the start values", i + 1);
    RG_TRY(reweighted_rounds(&state, err));
    coordinate_search(&state);
    const double width = cauchy_width * robust_scale(state.residual, problem->rows, state.scratch);
    out->objective = mean_loss(state.residual, problem->rows, width);
    out->evaluations = state.evaluations;
    return judge(arena, &state, out, err);
}

rg_status rg_lsq_choose(rg_arena *arena, const double *jacobian, size_t rows, int parameters,
                        const int *group, int count, int *chosen, rg_err *err)
{
    /* Greedy D-optimality with the matrix determinant lemma: det(M + v v') = det(M)(1 + v' M^-1 v),
     * and Sherman-Morrison to update M^-1 (V. V. Fedorov, Theory of Optimal Experiments, 1972). */
    const size_t m = (size_t)parameters;
    double *inverse = RG_NEW(arena, double, m *m, err);
    double *image = RG_NEW(arena, double, m, err);
    bool *taken = RG_NEW(arena, bool, rows, err);
    if (!inverse || !image || !taken)
        return RG_ERR_LIMIT;
    if ((size_t)count > rows)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "'%d' shapes wanted of %zu", count, rows);
    const double prior = 0.05; /* weak ridge: each ln(constant) known to a factor of about e^4 */
    for (size_t a = 0; a < m; a++)
        inverse[a * m + a] = 1.0 / prior;
    for (int pick = 0; pick < count; pick++) {
        double best = -1.0;
        size_t best_row = rows;
        for (size_t i = 0; i < rows; i++) {
            if (taken[i])
                continue;
            const double *v = jacobian + i * m;
            double gain = 0.0;
            for (size_t a = 0; a < m; a++) {
                double sum = 0.0;
                for (size_t b = 0; b < m; b++)
                    sum += inverse[a * m + b] * v[b];
                gain += v[a] * sum;
            }
            if (gain > best) {
                best = gain;
                best_row = i;
            }
        }
        if (best_row == rows)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "only '%d' unlike shapes to choose from, %d wanted", pick, count);
        chosen[pick] = (int)best_row;
        for (size_t i = 0; i < rows; i++)
            if (i == best_row || (group && group[i] >= 0 && group[i] == group[best_row]))
                taken[i] = true;
        const double *v = jacobian + best_row * m;
        double gain = 0.0;
        for (size_t a = 0; a < m; a++) {
            image[a] = 0.0;
            for (size_t b = 0; b < m; b++)
                image[a] += inverse[a * m + b] * v[b];
            gain += v[a] * image[a];
        }
        for (size_t a = 0; a < m; a++)
            for (size_t b = 0; b < m; b++)
                inverse[a * m + b] -= image[a] * image[b] / (1.0 + gain);
    }
    return RG_OK;
}
