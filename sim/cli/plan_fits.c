/* cli/plan_fits.c: the answer of a plan without traffic. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/plan.h"

static void answer_line(rg_report *report, const rg_space *s, const rg_fit *f)
{
    char weights[40], needed[40], split[96];
    const rg_machine *m = &s->machines[f->machine];
    const char *device = m->cluster->accel->name;
    rg_quantity_format(f->weight_bytes, RG_DIM_BYTES, 3, weights, sizeof weights);
    if (f->devices == 0) {
        rg_quantity_format(rg_accel_memory_bytes(m->cluster->accel), RG_DIM_BYTES, 3, needed,
                           sizeof needed);
        const int64_t devices = m->cluster->devices_per_node * m->cluster->nodes;
        rg_report_line(report,
                       "%s in %s (%s of weights): does not fit on '%s', %lld %s of %s each.",
                       s->model->name, f->weight_type, weights, m->cluster->name,
                       (long long)devices, devices == 1 ? "device" : "devices", needed);
        return;
    }
    rg_candidate_text(s, &s->candidates[f->candidate], split, sizeof split);
    rg_report_line(
        report,
        "%s in %s (%s of weights%s): %lld x %s (%s) is the least. One user: %.1f tokens/s "
        "(%.1f if memory alone decided); %lld sequences at once; together %.0f tokens/s.",
        s->model->name, f->weight_type, weights, f->checkpoint ? ", as stored" : "",
        (long long)f->devices, device, split, f->single_tokens_per_s, f->bound_tokens_per_s,
        (long long)f->sequences, f->output_tokens_per_s);
}

static const struct {
    const char *key, *heading;
    rg_cell cell;
    rg_dim dim;
    bool hidden;
} columns[] = {
    {"device", "device", RG_CELL_TEXT, RG_DIM_NONE, false},
    {"weight_type", "weights", RG_CELL_TEXT, RG_DIM_NONE, false},
    {"checkpoint", "as stored", RG_CELL_BOOL, RG_DIM_NONE, true},
    {"weight_bytes", "of the model", RG_CELL_REAL, RG_DIM_BYTES, false},
    {"fits", "fits", RG_CELL_BOOL, RG_DIM_NONE, false},
    {"devices", "devices", RG_CELL_INT, RG_DIM_NONE, false},
    {"least", "least", RG_CELL_BOOL, RG_DIM_NONE, true},
    {"arrangement", "split", RG_CELL_TEXT, RG_DIM_NONE, false},
    {"device_bytes_needed", "per device", RG_CELL_REAL, RG_DIM_BYTES, true},
    {"ttft_s", "ttft", RG_CELL_REAL, RG_DIM_SECONDS, false},
    {"single_stream_tokens_per_s", "one user", RG_CELL_REAL, RG_DIM_PER_SECOND, false},
    {"single_stream_bound_tokens_per_s", "its bound", RG_CELL_REAL, RG_DIM_PER_SECOND, false},
    {"max_sequences", "at once", RG_CELL_INT, RG_DIM_NONE, false},
    {"batch", "engine's", RG_CELL_INT, RG_DIM_NONE, true},
    {"output_tokens_per_s", "together", RG_CELL_REAL, RG_DIM_PER_SECOND, false},
    {"usd_per_hour", "cost", RG_CELL_REAL, RG_DIM_USD_PER_HOUR, false},
    {"cost_per_million_output_tokens_usd", "$/M out", RG_CELL_REAL, RG_DIM_USD, false},
};

static void row(rg_table *table, const rg_space *s, const rg_fit *f)
{
    char split[160] = "";
    const bool fits = f->devices > 0;
    if (fits)
        rg_candidate_text(s, &s->candidates[f->candidate], split, sizeof split);
    rg_table_text(table, s->machines[f->machine].name);
    rg_table_text(table, f->weight_type);
    rg_table_bool(table, f->checkpoint);
    rg_table_real(table, f->weight_bytes);
    rg_table_bool(table, fits);
    rg_table_int(table, f->devices);
    rg_table_bool(table, f->least);
    rg_table_text(table, split);
    rg_table_real(table, f->needed_bytes);
    rg_table_real(table, fits ? f->ttft_s : NAN);
    rg_table_real(table, fits ? f->single_tokens_per_s : NAN);
    rg_table_real(table, fits ? f->bound_tokens_per_s : NAN);
    rg_table_int(table, fits ? f->sequences : 0);
    rg_table_int(table, fits ? f->batch : 0);
    rg_table_real(table, fits ? f->output_tokens_per_s : NAN);
    rg_table_real(table, fits ? f->usd_per_hour : NAN);
    rg_table_real(table, fits ? f->usd_per_million_output : NAN);
}

void rg_plan_report_fits(rg_report *report, const rg_plan *plan, const rg_space *s,
                         const rg_fit *rows, int count)
{
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (rows[i].least || rows[i].devices == 0)
            answer_line(report, s, &rows[i]);
        any |= rows[i].devices > 0;
    }
    rg_report_json(report, "feasible", json_boolean(any));
    rg_report_json(report, "winner", json_null());
    rg_report_json(report, "runners_up", json_array());
    rg_report_json(report, "frontier", json_array());
    rg_table *table = rg_report_table(report, "fits", "Splits that fit");
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        rg_table_column(table, columns[i].key, columns[i].heading, columns[i].cell, columns[i].dim,
                        columns[i].hidden);
    for (int i = 0; i < count; i++)
        row(table, s, &rows[i]);
    rg_report_assume(report, "prompts of %.0f and answers of %.0f tokens; --isl, --osl change them",
                     plan->traffic.mean_prompt, plan->traffic.mean_output);
    rg_report_assume(report, "queueing is left out; --rate, --users or --trace take it in");
    rg_report_assume(report, "engine constants of '%s'", s->engines[0].name);
    for (int i = 0; i < s->machine_count; i++) {
        const rg_accel *accel = s->machines[i].cluster->accel;
        if (!rg_accel_peak(accel, RG_BF16) && rg_accel_peak(accel, RG_FP16))
            rg_report_assume(report, "%s has no bf16 products: fp16 in its place",
                             s->machines[i].name);
        if (s->machines[i].lacks[0])
            rg_report_line(report, "%s cannot run it: %s.", s->machines[i].name,
                           s->machines[i].lacks);
        if (s->machines[i].impossible > 0)
            rg_report_assume(report, "%s: %lld splits cannot be, the first as %s",
                             s->machines[i].name, (long long)s->machines[i].impossible,
                             s->machines[i].reason);
    }
}
