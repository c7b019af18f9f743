// SPDX-License-Identifier: Apache-2.0
#include "plan/cell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "step/arrangement.h"

/* Settings and their defaults; the names are those of the options of `ridge estimate`. */
static const struct {
    const char *name, *fallback;
    bool load; /* changes what is asked of an arrangement, not the arrangement */
} known[] = {
    {"hw", NULL, false},
    {"model", NULL, false},
    {"weight-type", NULL, false},
    {"kv-type", NULL, false},
    {"act-type", "bf16", false},
    {"kv-layout", NULL, false},
    {"unfused", NULL, false},
    {"moe-skew", NULL, false},
    {"tp", NULL, false},
    {"pp", NULL, false},
    {"ep", NULL, false},
    {"cp", NULL, false},
    {"dp", NULL, false},
    {"attention-dp", NULL, false},
    {"sequence-parallel", NULL, false},
    {"micro-batches", NULL, false},
    {"all-to-all", NULL, false},
    {"expert-replicas", NULL, false},
    {"expert-load", NULL, false},
    {"capacity-factor", NULL, false},
    {"capacity-drop", NULL, false},
    {"cp-gather", NULL, false},
    {"engine", "vllm", false},
    {"ideal", NULL, false},
    {"sustained", NULL, false},
    {"batch", "1", true},
    {"context", "2048", true},
    {"output-tokens", "256", true},
};
enum { KNOWN = sizeof known / sizeof known[0] };

static const char *const scopes[] = {"hw", "cluster", "model", "engine", NULL};

static bool is_change(const char *name)
{
    const rg_override change = {name, "", RG_NOWHERE};
    const rg_changes one = {&change, 1};
    for (int i = 0; scopes[i]; i++)
        if (rg_changes_has(&one, scopes[i]))
            return true;
    return false;
}

/* The name that cells use for a setting, "" for none. */
static const char *own_name(const char *name, const char **names /* [KNOWN + 1] */)
{
    for (int i = 0; i < KNOWN; i++) {
        names[i] = known[i].name;
        if (strcmp(name, known[i].name) == 0)
            return known[i].name;
    }
    names[KNOWN] = NULL;
    const char *same = is_change(name) ? name : rg_text_synonym(name, names);
    return same ? same : "";
}

rg_status rg_cell_set(rg_cell_spec *cell, const char *name, const char *value, rg_pos pos,
                      rg_err *err)
{
    const char *names[KNOWN + 1], *own = own_name(name, names);
    if (!*own) {
        const char *nearest = rg_text_nearest(name, names);
        return rg_fail(err, RG_ERR_INPUT, pos, "unknown setting '%s'%s%s%s", name,
                       nearest ? "; did you mean '"
                               : "; known are the options of 'ridge estimate' and paths such as "
                                 "hw.memory.hbm.bandwidth",
                       nearest ? nearest : "", nearest ? "'?" : "");
    }
    name = own;
    int i = 0;
    while (i < cell->count && strcmp(cell->settings[i].name, name) != 0)
        i++;
    if (i == RG_CELL_SETTINGS)
        return rg_fail(err, RG_ERR_LIMIT, pos, "more than %d settings", RG_CELL_SETTINGS);
    cell->settings[i] = (rg_setting){name, value, pos};
    if (i == cell->count)
        cell->count++;
    return RG_OK;
}

static const rg_setting *find(const rg_cell_spec *cell, const char *name)
{
    for (int i = 0; i < cell->count; i++)
        if (strcmp(cell->settings[i].name, name) == 0)
            return &cell->settings[i];
    return NULL;
}

const char *rg_cell_get(const rg_cell_spec *cell, const char *name)
{
    const char *names[KNOWN + 1], *own = own_name(name, names);
    name = *own ? own : name;
    const rg_setting *setting = find(cell, name);
    if (setting)
        return setting->value;
    for (int i = 0; i < KNOWN; i++)
        if (strcmp(name, known[i].name) == 0)
            return known[i].fallback;
    return NULL;
}

static rg_pos pos_of(const rg_cell_spec *cell, const char *name)
{
    const rg_setting *setting = find(cell, name);
    return setting ? setting->pos : RG_NOWHERE;
}

static const char *look_up(const void *from, const char *name, rg_pos *pos)
{
    *pos = pos_of(from, name);
    return rg_cell_get(from, name);
}

static rg_lookup lookup_of(const rg_cell_spec *cell)
{
    return (rg_lookup){look_up, cell};
}

static rg_status get_name(const rg_cell_spec *cell, const char *name, const char **out, rg_err *err)
{
    *out = rg_cell_get(cell, name);
    if (*out)
        return RG_OK;
    return rg_fail(err, RG_ERR_INPUT, RG_NOWHERE, "missing setting '%s'", name);
}

/* ---- what cells share ---- */

enum { KEPT = 512, KEPT_MIB = 512, KEY_SIZE = 8192 };

typedef enum kept_kind { KEPT_CLUSTER, KEPT_MODEL, KEPT_ENGINE, KEPT_ARRANGEMENT } kept_kind;

typedef struct kept {
    kept_kind kind;
    const char *key;
    const void *object;
} kept;

struct rg_cells {
    rg_arena *arena;
    kept items[KEPT];
    int count;
    rg_step_shared shared;
    rg_cell_setup setup;
};

rg_status rg_cells_new(rg_cells **out, rg_err *err)
{
    rg_arena *arena = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
    rg_cells *cells = malloc(sizeof *cells);
    if (!arena || !cells) {
        rg_arena_free(arena);
        free(cells);
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "the system has no memory left");
    }
    *cells = (rg_cells){.arena = arena};
    *out = cells;
    return RG_OK;
}

void rg_cells_free(rg_cells *cells)
{
    if (!cells)
        return;
    rg_arena_free(cells->arena);
    free(cells);
}

static const void *recall(const rg_cells *cells, kept_kind kind, const char *key)
{
    for (int i = cells->count - 1; i >= 0; i--)
        if (cells->items[i].kind == kind && strcmp(cells->items[i].key, key) == 0)
            return cells->items[i].object;
    return NULL;
}

static rg_status keep(rg_cells *cells, kept_kind kind, const char *key, const void *object,
                      rg_err *err)
{
    const char *copy = rg_arena_strdup(cells->arena, key, err);
    if (!copy)
        return RG_ERR_LIMIT;
    cells->items[cells->count++] = (kept){kind, copy, object};
    return RG_OK;
}

/* The settings that an object depends on, as one text: those named, and changes of some scopes. */
static rg_status key_of(const rg_cell_spec *spec, const char *const *names, const char *const *of,
                        char key[KEY_SIZE], rg_err *err)
{
    size_t used = 0;
    for (int i = 0; names[i]; i++) {
        const char *value = rg_cell_get(spec, names[i]);
        used += (size_t)snprintf(key + used, used < KEY_SIZE ? KEY_SIZE - used : 0, "%s=%s;",
                                 names[i], value ? value : "");
        if (used >= KEY_SIZE)
            break;
    }
    for (int i = 0; i < spec->count && used < KEY_SIZE; i++) {
        const rg_override change = {spec->settings[i].name, spec->settings[i].value,
                                    spec->settings[i].pos};
        const rg_changes one = {&change, 1};
        for (int j = 0; of[j] && used < KEY_SIZE; j++)
            if (rg_changes_has(&one, of[j]))
                used += (size_t)snprintf(key + used, KEY_SIZE - used, "%s=%s;", change.path,
                                         change.value);
    }
    if (used >= KEY_SIZE)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "settings of more than %d letters", KEY_SIZE);
    return RG_OK;
}

static rg_status get_cluster(rg_cells *cells, const rg_cell_spec *spec, const rg_changes *changes,
                             rg_err *err)
{
    const rg_lookup settings = lookup_of(spec);
    static const char *const names[] = {"hw", NULL}, *const of[] = {"hw", "cluster", NULL};
    char key[KEY_SIZE];
    const char *name;
    RG_TRY(key_of(spec, names, of, key, err));
    const rg_cluster *found = recall(cells, KEPT_CLUSTER, key);
    if (found) {
        cells->setup.cluster = found;
        return RG_OK;
    }
    rg_cluster *cluster;
    RG_TRY(get_name(spec, "hw", &name, err));
    RG_TRY(rg_lookup_placed(rg_cluster_load_changed(cells->arena, name, changes, &cluster, err),
                            &settings, "hw", err));
    cells->setup.cluster = cluster;
    return keep(cells, KEPT_CLUSTER, key, cluster, err);
}

static rg_status get_model(rg_cells *cells, const rg_cell_spec *spec, const rg_changes *changes,
                           rg_err *err)
{
    const rg_lookup settings = lookup_of(spec);
    static const char *const names[] = {"model", NULL}, *const of[] = {"model", NULL};
    char key[KEY_SIZE];
    const char *name;
    RG_TRY(key_of(spec, names, of, key, err));
    const rg_model *found = recall(cells, KEPT_MODEL, key);
    if (found) {
        cells->setup.model = found;
        return RG_OK;
    }
    rg_model *model;
    RG_TRY(get_name(spec, "model", &name, err));
    RG_TRY(rg_lookup_placed(rg_model_load_changed(cells->arena, name, changes, &model, err),
                            &settings, "model", err));
    cells->setup.model = model;
    return keep(cells, KEPT_MODEL, key, model, err);
}

static rg_status get_engine(rg_cells *cells, const rg_cell_spec *spec, const rg_changes *changes,
                            rg_err *err)
{
    const rg_lookup settings = lookup_of(spec);
    static const char *const names[] = {"engine", NULL}, *const of[] = {"engine", NULL};
    char key[KEY_SIZE];
    const char *name;
    RG_TRY(key_of(spec, names, of, key, err));
    const rg_engine *found = recall(cells, KEPT_ENGINE, key);
    if (found) {
        cells->setup.engine = *found;
        return RG_OK;
    }
    rg_engine *engine = RG_NEW(cells->arena, rg_engine, 1, err);
    if (!engine)
        return RG_ERR_LIMIT;
    RG_TRY(get_name(spec, "engine", &name, err));
    RG_TRY(rg_lookup_placed(rg_engine_load_changed(cells->arena, name, changes, engine, err),
                            &settings, "engine", err));
    cells->setup.engine = *engine;
    return keep(cells, KEPT_ENGINE, key, engine, err);
}

/* Everything but the load, prepared once for cells that differ in the load alone. */
static rg_status get_arrangement(rg_cells *cells, const rg_cell_spec *spec,
                                 const rg_changes *changes, rg_err *err)
{
    const rg_lookup settings = lookup_of(spec);
    const char *names[KNOWN + 1] = {NULL};
    for (int i = 0, n = 0; i < KNOWN; i++)
        if (!known[i].load)
            names[n++] = known[i].name;
    char key[KEY_SIZE];
    RG_TRY(key_of(spec, names, scopes, key, err));
    const rg_cell_setup *found = recall(cells, KEPT_ARRANGEMENT, key);
    if (found) {
        cells->setup = *found;
        return RG_OK;
    }
    rg_cell_setup *s = &cells->setup;
    *s = (rg_cell_setup){.parallel = rg_parallel_default()};
    RG_TRY(get_cluster(cells, spec, changes, err));
    RG_TRY(get_model(cells, spec, changes, err));
    RG_TRY(get_engine(cells, spec, changes, err));
    RG_TRY(rg_step_kernels_read(&settings, &s->kernel, err));
    if (s->kernel.ideal)
        rg_engine_without_host(&s->engine);
    RG_TRY(rg_parallel_read(cells->arena, &settings, &s->parallel, err));
    RG_TRY(rg_formats_read(&settings, s->model, &s->formats, err));
    s->formats.page_tokens = s->engine.block_tokens;
    rg_formats_expand(s->cluster->accel, &s->formats);
    RG_TRY(rg_step_prepare_shared(cells->arena, &cells->shared, s->cluster, s->model, &s->formats,
                                  &s->parallel, &s->engine, &s->kernel, &s->step, err));
    rg_cell_setup *copy = RG_NEW(cells->arena, rg_cell_setup, 1, err);
    if (!copy)
        return RG_ERR_LIMIT;
    *copy = *s;
    return keep(cells, KEPT_ARRANGEMENT, key, copy, err);
}

rg_status rg_cells_prepare(rg_cells *cells, const rg_cell_spec *spec, const rg_cell_setup **out,
                           rg_err *err)
{
    /* Four entries at most are added below. */
    if (cells->count > KEPT - 4 || rg_arena_used_bytes(cells->arena) >> 20 > KEPT_MIB) {
        rg_arena_reset(cells->arena);
        cells->count = 0;
        cells->shared.count = 0;
    }
    rg_override items[RG_CELL_SETTINGS];
    rg_changes changes = {items, 0};
    for (int i = 0; i < spec->count; i++)
        if (is_change(spec->settings[i].name))
            items[changes.count++] = (rg_override){spec->settings[i].name, spec->settings[i].value,
                                                   spec->settings[i].pos};
    RG_TRY(get_arrangement(cells, spec, &changes, err));
    rg_load *load = &cells->setup.load;
    const rg_lookup settings = lookup_of(spec);
    RG_TRY(rg_lookup_int(&settings, "batch", 1, 1 << 20, &load->batch, err));
    RG_TRY(rg_lookup_int(&settings, "context", 1, 1 << 30, &load->context_tokens, err));
    RG_TRY(rg_lookup_int(&settings, "output-tokens", 1, 1 << 24, &load->output_tokens, err));
    *out = &cells->setup;
    return RG_OK;
}

rg_status rg_cells_estimate(rg_cells *cells, const rg_cell_spec *spec, rg_estimate *out,
                            rg_err *err)
{
    const rg_cell_setup *s;
    RG_TRY(rg_cells_prepare(cells, spec, &s, err));
    return rg_estimate_load(s->step, s->cluster, &s->formats, &s->parallel, &s->engine, &s->load,
                            out, err);
}
