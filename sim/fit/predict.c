/* fit/predict.c: one door to every model that a measured table can be held against. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/predict.h"

#include <math.h>
#include <string.h>

#include "kernel/device.h"

struct rg_predictor {
    rg_accel *accel;
    rg_kernel_device *own;   /* library of the device's architecture, TensorRT-LLM's rows */
    rg_kernel_device *flash; /* rows that flash attention ran */
    rg_kernel_device *ideal;
    rg_cluster *cluster;
    rg_coll_constants collective;
    rg_coll_context *links;
    rg_arena *arena;
    bool own_collective;
};

static bool is_collective(rg_measured_kind kind)
{
    return kind == RG_MEASURED_NCCL || kind == RG_MEASURED_CUSTOM_ALLREDUCE;
}

static rg_status prepare(rg_arena *arena, const rg_accel *accel, const rg_kernel_options *options,
                         rg_attention_library library, bool ideal, rg_kernel_device **out,
                         rg_err *err)
{
    rg_kernel_options chosen = options ? *options : (rg_kernel_options){0};
    chosen.attention = library;
    chosen.ideal = ideal || chosen.ideal;
    RG_TRY(rg_kernel_prepare(arena, accel, &chosen, out, err));
    (*out)->serial = 0; /* constants change in place: nothing may be remembered */
    return RG_OK;
}

rg_status rg_predictor_new(rg_arena *arena, const char *hw, const rg_kernel_options *options,
                           rg_measured_kind kind, rg_predictor **out, rg_err *err)
{
    rg_predictor *p = RG_NEW(arena, rg_predictor, 1, err);
    if (!p)
        return RG_ERR_LIMIT;
    p->arena = arena;
    if (is_collective(kind)) {
        RG_TRY(rg_cluster_load(arena, hw, &p->cluster, err));
        p->accel = p->cluster->accel;
        p->collective = rg_coll_constants_of(p->cluster);
        RG_TRY(rg_coll_prepare(arena, p->cluster, NULL, &p->links, err));
        for (int i = 0; i < p->accel->fit_count; i++)
            p->own_collective |=
                strcmp(p->accel->fit[i].group, "collective") == 0 && !p->accel->fit[i].borrowed;
    } else {
        RG_TRY(rg_accel_load(arena, hw, &p->accel, err));
        RG_TRY(prepare(arena, p->accel, options, RG_ATTENTION_TRTLLM, false, &p->own, err));
        RG_TRY(prepare(arena, p->accel, options, RG_ATTENTION_FLASH, false, &p->flash, err));
        RG_TRY(prepare(arena, p->accel, options, RG_ATTENTION_AUTO, true, &p->ideal, err));
    }
    *out = p;
    return RG_OK;
}

const rg_accel *rg_predictor_accel(const rg_predictor *predictor)
{
    return predictor->accel;
}

const char *rg_predictor_note(const rg_predictor *predictor)
{
    return predictor->links ? rg_coll_note(predictor->links)
                            : rg_kernel_device_note(predictor->own);
}

rg_status rg_predictor_judge(const rg_predictor *predictor, rg_measured_table *table, rg_err *err)
{
    if (predictor->ideal)
        RG_TRY(rg_measured_judge(table, predictor->accel, predictor->ideal, err));
    for (size_t i = 0; i < table->count; i++) {
        rg_measured_row *row = &table->rows[i];
        if (row->skip == RG_SKIP_NONE && !isfinite(rg_predict_seconds(predictor, row)))
            row->skip = RG_SKIP_UNSUPPORTED;
    }
    return RG_OK;
}

bool rg_predictor_own(const rg_predictor *predictor, const rg_measured_row *row)
{
    if (row->collective)
        return predictor->own_collective;
    return !predictor->own->options.ideal &&
           predictor->own->origin[rg_kernel_group_of(&row->op)] == RG_KO_OWN;
}

static double collective_seconds(const rg_predictor *p, const rg_measured_row *row)
{
    rg_coll_query query = {
        .ranks = row->ranks,
        .bytes = RG_B(row->bytes),
        .library = strcmp(row->collective, "all_reduce_custom") == 0 ? RG_LIB_CUSTOM : RG_LIB_NCCL,
        .integer = row->element_bytes < 2.0};
    rg_coll_result result;
    const char *name = query.library == RG_LIB_CUSTOM ? "all_reduce" : row->collective;
    if (rg_coll_op_parse(name, &query.op, NULL) != RG_OK ||
        rg_coll_time(p->links, &query, &result, NULL) != RG_OK)
        return NAN;
    return result.time.v;
}

double rg_predict_seconds(const rg_predictor *predictor, const rg_measured_row *row)
{
    if (row->collective)
        return collective_seconds(predictor, row);
    const rg_kernel_device *device =
        row->library == RG_ATTENTION_FLASH ? predictor->flash : predictor->own;
    rg_kernel_time time;
    return rg_kernel_op_time(device, &row->op, &time, NULL) == RG_OK ? time.total.v : NAN;
}

int rg_predict_group(const rg_measured_row *row)
{
    return row->collective ? RG_PREDICT_COLLECTIVE : (int)rg_kernel_group_of(&row->op);
}

bool rg_predict_elsewhere(const rg_measured_row *row)
{
    return row->library == RG_ATTENTION_FLASH && row->op.kind == RG_OP_ATTN_PREFILL &&
           row->op.u.attention.q_tokens == 1 && !row->op.u.attention.no_cache;
}

const char *rg_predict_group_name(int group)
{
    return group == RG_PREDICT_COLLECTIVE ? "collective" : rg_kernel_groups[group].name;
}

/* What is known of a constant of collectives before a fit: within a factor of about two. */
static const double collective_spread = 0.7;

int rg_predict_parameters(const rg_predictor *predictor, int group, rg_lsq_parameter *out)
{
    if (group == RG_PREDICT_COLLECTIVE) {
        int count;
        const rg_coll_constant *table = rg_coll_constant_table(&count);
        for (int i = 0; i < count; i++) {
            const double value =
                *(const double *)(const void *)((const char *)&predictor->collective +
                                                table[i].offset);
            out[i] = (rg_lsq_parameter){.name = table[i].name,
                                        .start = fmin(fmax(value, table[i].least), table[i].most),
                                        .lower = table[i].least,
                                        .upper = table[i].most,
                                        .spread = value > 0.0 ? collective_spread : 0.0};
        }
        return count;
    }
    const rg_kernel_group_info *info = &rg_kernel_groups[group];
    for (int i = 0; i < info->count; i++) {
        const rg_kernel_constant *c = &info->constants[i];
        const double value = predictor->own->c[group][i];
        out[i] = (rg_lsq_parameter){.name = c->name,
                                    .start = fmin(fmax(value, c->lower), c->upper),
                                    .lower = c->lower,
                                    .upper = c->upper,
                                    .spread = c->spread};
    }
    return info->count;
}

void rg_predict_set(rg_predictor *predictor, int group, const double *values)
{
    if (group == RG_PREDICT_COLLECTIVE) {
        int count;
        const rg_coll_constant *table = rg_coll_constant_table(&count);
        for (int i = 0; i < count; i++)
            *(double *)(void *)((char *)&predictor->collective + table[i].offset) = values[i];
        rg_coll_retune(predictor->links, &predictor->collective);
        return;
    }
    const size_t size = (size_t)rg_kernel_groups[group].count * sizeof(double);
    memcpy(predictor->own->c[group], values, size);
    memcpy(predictor->flash->c[group], values, size);
}
