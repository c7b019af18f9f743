/* fit/guard_baseline.c: baselines, read strictly from YAML or taken from a run. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/guard.h"

#include <math.h>
#include <string.h>

#include "core/doc.h"

static rg_status rg_base_quantity(rg_node *map, const char *key, rg_dim dim, double *out,
                                  rg_err *err)
{
    return rg_map_quantity_or(map, key, dim, NAN, out, err);
}

static rg_status rg_base_pair(rg_node *map, const char *key, rg_dim dim, double *a, double *b,
                              rg_err *err)
{
    rg_node *list = rg_map_find(map, key);
    if (list == NULL)
        return RG_OK;
    RG_TRY(rg_node_expect(list, RG_NODE_LIST, key, err));
    if (list->count != 2)
        return rg_fail(err, RG_ERR_INPUT, list->pos, "%s has '%zu' values, needs 2", key,
                       list->count);
    RG_TRY(rg_node_quantity(list->first, dim, a, err));
    return rg_node_quantity(list->first->next, dim, b, err);
}

/* Costs are times, or rates whose reciprocal is the cost. */
static rg_status rg_base_costs(rg_node *map, rg_base_entry *e, rg_err *err)
{
    rg_side *s = &e->side;
    rg_dim dim = RG_DIM_SECONDS;
    const char *unit;
    RG_TRY(rg_map_text_or(map, "rate", NULL, &unit, err));
    if (unit != NULL) {
        e->rate_unit = unit;
        dim = strcmp(unit, "byte/s") == 0   ? RG_DIM_BYTES_PER_S
              : strcmp(unit, "FLOP/s") == 0 ? RG_DIM_FLOPS_PER_S
                                            : RG_DIM_PER_SECOND;
    }
    double low = NAN, high = NAN;
    RG_TRY(rg_base_quantity(map, "median", dim, &s->centre, err));
    RG_TRY(rg_base_pair(map, "interval", dim, &low, &high, err));
    RG_TRY(rg_base_quantity(map, "q1", dim, &s->q1, err));
    RG_TRY(rg_base_quantity(map, "q3", dim, &s->q3, err));
    RG_TRY(rg_base_quantity(map, "min", dim, &s->least, err));
    s->modes = 1;
    double a = NAN, b = NAN;
    RG_TRY(rg_base_pair(map, "groups", dim, &a, &b, err));
    RG_TRY(rg_map_real_or(map, "slow_share", 0, &s->slow_share, err));
    if (!isnan(a))
        s->modes = 2;
    if (unit != NULL) {
        s->centre = 1 / s->centre;
        s->q1 = 1 / s->q1;
        s->q3 = 1 / s->q3;
        s->least = 1 / s->least;
        low = 1 / low;
        high = 1 / high;
        a = 1 / a;
        b = 1 / b;
    }
    s->low = isnan(low) ? s->centre : low;
    s->high = isnan(high) ? s->centre : high;
    s->mode[0] = isnan(a) ? s->centre : a;
    s->mode[1] = isnan(b) ? s->centre : b;
    return RG_OK;
}

static rg_status rg_base_entry_read(rg_node *map, rg_base_entry *e, rg_err *err)
{
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, "kernel", err));
    *e = (rg_base_entry){.pos = map->pos};
    rg_side *s = &e->side;
    double samples, processes;
    RG_TRY(rg_map_text(map, "kernel", &e->kernel, err));
    RG_TRY(rg_map_text_or(map, "problem", "", &e->problem, err));
    RG_TRY(rg_map_text_or(map, "dtype", "", &e->dtype, err));
    RG_TRY(rg_base_costs(map, e, err));
    RG_TRY(rg_map_quantity_or(map, "error", RG_DIM_NONE, NAN, &s->error, err));
    RG_TRY(rg_map_quantity_or(map, "between", RG_DIM_NONE, NAN, &s->between, err));
    RG_TRY(rg_map_real_or(map, "samples", NAN, &samples, err));
    RG_TRY(rg_map_real_or(map, "effective_samples", samples, &s->effective, err));
    RG_TRY(rg_map_real_or(map, "correlation", NAN, &s->lag1, err));
    RG_TRY(rg_map_quantity_or(map, "wander", RG_DIM_NONE, 0, &s->wander, err));
    s->roaming = s->wander;
    RG_TRY(rg_map_real_or(map, "processes", 1, &processes, err));
    RG_TRY(rg_map_text_or(map, "cache", "", &e->cache, err));
    RG_TRY(rg_base_quantity(map, "clock", RG_DIM_HERTZ, &e->clock_hz, err));
    RG_TRY(rg_map_real_or(map, "cycles", NAN, &e->cycles, err));
    RG_TRY(rg_base_quantity(map, "flops", RG_DIM_FLOPS, &e->flops, err));
    RG_TRY(rg_base_quantity(map, "model_bytes", RG_DIM_BYTES, &e->model_bytes, err));
    RG_TRY(rg_base_quantity(map, "dram_bytes", RG_DIM_BYTES, &e->dram_bytes, err));
    RG_TRY(rg_map_real_or(map, "registers", NAN, &e->registers, err));
    RG_TRY(rg_base_quantity(map, "spill_bytes", RG_DIM_BYTES, &e->spill_bytes, err));
    RG_TRY(rg_base_quantity(map, "shared_bytes", RG_DIM_BYTES, &e->shared_bytes, err));
    RG_TRY(rg_map_real_or(map, "blocks_per_sm", NAN, &e->blocks_per_sm, err));
    RG_TRY(rg_map_text_or(map, "throttled", NULL, &e->throttled, err));
    RG_TRY(rg_map_quantity_or(map, "max_slowdown", RG_DIM_NONE, NAN, &e->max_slowdown, err));
    RG_TRY(rg_map_text_or(map, "note", NULL, &e->note, err));
    RG_TRY(rg_map_text_or(map, "from", "", &e->from, err));
    RG_TRY(rg_map_done(map, err));
    if (!isnan(s->centre) && !(s->centre > 0))
        return rg_fail(err, RG_ERR_INPUT, map->pos, "the median of '%s' is not positive",
                       e->kernel);
    s->count = samples;
    s->time = samples / s->effective;
    s->processes = processes;
    s->assumed = isnan(s->error);
    if (s->assumed)
        s->error = RG_GUARD_SINGLE;
    s->freedom = s->assumed ? 1e6 : processes >= 3 ? processes - 1 : fmax(1, s->effective - 1);
    if (isnan(s->freedom))
        s->freedom = 1;
    s->dispersion = (s->q3 - s->q1) / s->centre;
    s->usable = isfinite(s->centre);
    return RG_OK;
}

rg_status rg_baseline_load(rg_arena *arena, const char *path, rg_baseline **out, rg_err *err)
{
    rg_node *root;
    RG_TRY(rg_doc_load(arena, path, &root, err));
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "baseline", err));
    rg_baseline *b = RG_NEW(arena, rg_baseline, 1, err);
    if (b == NULL)
        return RG_ERR_LIMIT;
    b->path = rg_arena_strdup(arena, path, err);
    const char *schema;
    rg_node *kernels;
    RG_TRY(rg_map_text(root, "schema", &schema, err));
    if (strcmp(schema, "ridge.baseline/1") != 0)
        return rg_fail(err, RG_ERR_INPUT, rg_map_find(root, "schema")->pos,
                       "schema '%s' is not known; this ridge reads 'ridge.baseline/1'", schema);
    RG_TRY(rg_map_text_or(root, "tool", "", &b->tool, err));
    RG_TRY(rg_map_text_or(root, "device", "", &b->device, err));
    RG_TRY(rg_map_text_or(root, "driver", "", &b->driver, err));
    RG_TRY(rg_map_text_or(root, "ecc", "", &b->ecc, err));
    RG_TRY(rg_map_text_or(root, "clocks", "", &b->clocks, err));
    RG_TRY(rg_map_get(root, "kernels", &kernels, err));
    RG_TRY(rg_node_expect(kernels, RG_NODE_LIST, "kernels", err));
    RG_TRY(rg_map_done(root, err));
    b->entries = RG_NEW(arena, rg_base_entry, kernels->count, err);
    if (b->path == NULL || b->entries == NULL)
        return RG_ERR_LIMIT;
    for (rg_node *n = kernels->first; n != NULL; n = n->next) {
        RG_TRY(rg_base_entry_read(n, &b->entries[b->count], err));
        for (int i = 0; i < b->count; i++) {
            const rg_base_entry *a = &b->entries[i], *c = &b->entries[b->count];
            if (strcmp(a->kernel, c->kernel) == 0 && strcmp(a->problem, c->problem) == 0 &&
                strcmp(a->dtype, c->dtype) == 0)
                return rg_fail(err, RG_ERR_INPUT, n->pos,
                               "kernel '%s' with problem '%s' stands here and in line %d",
                               c->kernel, c->problem, a->pos.line);
        }
        b->count++;
    }
    *out = b;
    return RG_OK;
}

rg_status rg_baseline_of_run(rg_arena *arena, const rg_run *run, const char *from,
                             rg_baseline **out, rg_err *err)
{
    rg_baseline *b = RG_NEW(arena, rg_baseline, 1, err);
    if (b == NULL)
        return RG_ERR_LIMIT;
    *b = (rg_baseline){.path = run->path,
                       .tool = run->tool,
                       .device = run->device,
                       .driver = run->driver,
                       .ecc = run->ecc,
                       .clocks = run->clocks};
    b->entries = RG_NEW(arena, rg_base_entry, run->count, err);
    if (b->entries == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < run->count; i++) {
        const rg_run_entry *r = &run->entries[i];
        rg_base_entry *e = &b->entries[b->count++];
        *e = (rg_base_entry){.kernel = r->kernel,
                             .problem = r->problem,
                             .dtype = r->dtype,
                             .cache = r->cache,
                             .rate_unit = r->rate_unit,
                             .clock_hz = r->clock_hz,
                             .cycles = r->cycles,
                             .flops = r->flops,
                             .model_bytes = r->model_bytes,
                             .dram_bytes = r->dram_bytes,
                             .registers = r->registers,
                             .spill_bytes = r->spill_bytes,
                             .shared_bytes = r->shared_bytes,
                             .blocks_per_sm = r->blocks_per_sm,
                             .throttled = r->throttled,
                             .max_slowdown = NAN,
                             .from = from,
                             .pos = r->pos};
        RG_TRY(rg_side_of(arena, r, &e->side, err));
    }
    *out = b;
    return RG_OK;
}
