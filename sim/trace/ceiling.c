/* trace/ceiling.c: ERT reports and cache sweeps. */
// SPDX-License-Identifier: Apache-2.0
#include "trace/ceiling.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/doc.h"
#include "core/file.h"
#include "core/stat.h"
#include "core/text.h"

enum { RG_CEILINGS = 64, RG_SWEEP_ROWS = 4096 };

static rg_status rg_ceiling_add(rg_arena *arena, rg_ceilings *c, const char *name, bool compute,
                                double value, rg_pos pos, rg_err *err)
{
    if (!(isfinite(value) && value > 0))
        return rg_fail(err, RG_ERR_INPUT, pos, "ceiling '%s' is not a positive number", name);
    if (c->count == RG_CEILINGS)
        return rg_fail(err, RG_ERR_LIMIT, pos, "more than %d ceilings", RG_CEILINGS);
    rg_ceiling *item = &c->items[c->count++];
    *item = (rg_ceiling){
        .name = rg_arena_strdup(arena, name, err), .compute = compute, .value = value, .pos = pos};
    return item->name == NULL ? RG_ERR_LIMIT : RG_OK;
}

/* "FP64 GFLOPs" -> compute "FP64"; "L1", "DRAM" -> bandwidth in GB/s. */
static rg_status rg_ert_figure(rg_arena *arena, rg_ceilings *c, const char *label, double value,
                               rg_pos pos, rg_err *err)
{
    char name[64];
    snprintf(name, sizeof name, "%s", label);
    char *flops = strstr(name, "GFLOP");
    if (flops == NULL)
        return rg_ceiling_add(arena, c, name, false, value * 1e9, pos, err);
    *flops = '\0';
    for (size_t n = strlen(name); n > 0 && name[n - 1] == ' '; n--)
        name[n - 1] = '\0';
    return rg_ceiling_add(arena, c, name, true, value * 1e9, pos, err);
}

/* Lines "  4360.14 FP64 GFLOPs EMP"; the rest is decoration and metadata. */
static rg_status rg_ert_text(rg_arena *arena, const char *path, const char *text, rg_ceilings *c,
                             rg_err *err)
{
    c->tool = "ert";
    int line = 0;
    for (const char *p = text; *p != '\0';) {
        const char *end = strchr(p, '\n');
        const size_t length = end == NULL ? strlen(p) : (size_t)(end - p);
        char copy[256], number[64], label[64];
        line++;
        snprintf(copy, sizeof copy, "%.*s", (int)(length < 255 ? length : 255), p);
        p += length + (end != NULL);
        char *mark = strstr(copy, " EMP");
        double value;
        if (mark == NULL || sscanf(copy, "%63s %63[^\n]", number, label) != 2 ||
            !rg_text_to_real(number, &value))
            continue;
        label[strcspn(label, "\r")] = '\0';
        mark = strstr(label, " EMP");
        if (mark == NULL)
            continue;
        *mark = '\0';
        RG_TRY(rg_ert_figure(arena, c, label, value, (rg_pos){path, line, 1}, err));
    }
    return RG_OK;
}

/* roofline.json: empirical.gbytes.data and empirical.gflops.data, lists of [name, value]. */
static rg_status rg_ert_json(rg_arena *arena, rg_node *root, rg_ceilings *c, rg_err *err)
{
    static const char *const keys[] = {"gflops", "gbytes", NULL};
    c->tool = "ert";
    rg_node *empirical = rg_map_find(root, "empirical");
    if (empirical == NULL || empirical->kind != RG_NODE_MAP)
        return rg_fail(err, RG_ERR_INPUT, root->pos,
                       "JSON without 'empirical'; use ERT's roofline.json");
    for (const char *const *key = keys; *key != NULL; key++) {
        rg_node *group = rg_map_find(empirical, *key);
        rg_node *data =
            group != NULL && group->kind == RG_NODE_MAP ? rg_map_find(group, "data") : NULL;
        for (rg_node *n = data != NULL && data->kind == RG_NODE_LIST ? data->first : NULL;
             n != NULL; n = n->next) {
            double value;
            if (n->kind != RG_NODE_LIST || n->count != 2 || n->first->kind != RG_NODE_SCALAR)
                continue;
            RG_TRY(rg_node_real(n->first->next, false, &value, err));
            RG_TRY(rg_ert_figure(arena, c, n->first->text, value, n->pos, err));
        }
    }
    return RG_OK;
}

/* Rows "512 kB  12288 kB  7ms  0.1%  6992.5 GB/s ...": second size is the data set. */
static rg_status rg_sweep(rg_arena *arena, const char *path, const char *text, rg_ceilings *c,
                          rg_err *err)
{
    c->tool = "gpu-benches";
    double *size = RG_NEW(arena, double, RG_SWEEP_ROWS, err),
           *rate = RG_NEW(arena, double, RG_SWEEP_ROWS, err);
    if (size == NULL || rate == NULL)
        return RG_ERR_LIMIT;
    int n = 0;
    for (const char *p = text; *p != '\0' && n < RG_SWEEP_ROWS;) {
        const char *end = strchr(p, '\n');
        double per_block, set, ms, spread, bandwidth;
        if (sscanf(p, " %lf kB %lf kB %lfms %lf%% %lf GB/s", &per_block, &set, &ms, &spread,
                   &bandwidth) == 5 &&
            bandwidth > 0 && set > 0) {
            size[n] = set * 1e3;
            rate[n++] = bandwidth * 1e9;
        }
        p = end == NULL ? p + strlen(p) : end + 1;
    }
    if (n < 8)
        return RG_OK;
    /* Two plateaus: the cache from a few MB (below, L1 helps) to where the rate falls under the
     * geometric mean of both ends, and memory over the last eighth of the rows. */
    double *tail = RG_NEW(arena, double, n, err), *head = RG_NEW(arena, double, n, err);
    if (tail == NULL || head == NULL)
        return RG_ERR_LIMIT;
    const int last = n / 8 > 3 ? n / 8 : 3;
    memcpy(tail, rate + n - last, (size_t)last * sizeof *tail);
    rg_stat_sort(tail, (size_t)last);
    const double memory = rg_stat_quantile_sorted(tail, (size_t)last, 0.5);
    memcpy(head, rate, (size_t)n * sizeof *head);
    rg_stat_sort(head, (size_t)n);
    const double knee = sqrt(memory * rg_stat_quantile_sorted(head, (size_t)n, 0.9));
    int kept = 0;
    for (int i = 0; i < n && rate[i] > knee; i++)
        if (size[i] >= 4e6)
            head[kept++] = rate[i];
    const rg_pos pos = {path, 1, 1};
    if (kept >= 3) {
        rg_stat_sort(head, (size_t)kept);
        RG_TRY(rg_ceiling_add(arena, c, "L2", false,
                              rg_stat_quantile_sorted(head, (size_t)kept, 0.5), pos, err));
    }
    return rg_ceiling_add(arena, c, "DRAM", false, memory, pos, err);
}

/* A cache level less than 1.5 times as fast as the memory behind it, and named beyond L3, is the
 * toolkit's misreading of a bend in the curve. */
static void rg_ceilings_doubt(rg_ceilings *c)
{
    double memory = NAN;
    for (int i = 0; i < c->count; i++)
        if (!c->items[i].compute && strcmp(c->items[i].name, "DRAM") == 0)
            memory = c->items[i].value;
    for (int i = 0; i < c->count; i++) {
        rg_ceiling *item = &c->items[i];
        if (!item->compute && item->name[0] == 'L' && item->name[1] >= '4' &&
            item->value < 1.5 * memory)
            item->doubtful =
                "a level that the toolkit sees just above memory, and that no such machine has";
    }
}

void rg_ceilings_compare(rg_ceilings *c, double dram_spec)
{
    for (int i = 0; i < c->count; i++) {
        rg_ceiling *item = &c->items[i];
        if (item->compute || item->doubtful != NULL ||
            (strcmp(item->name, "DRAM") != 0 && strcmp(item->name, "HBM") != 0))
            continue;
        if (item->value > 1.02 * dram_spec)
            item->doubtful = "faster than the memory's own figure";
        else if (item->value < dram_spec * 2 / 3)
            item->doubtful =
                "under two thirds of the memory's own figure: a bad run, or another part";
    }
}

rg_status rg_ceilings_parse(rg_arena *arena, const char *path, const char *text, size_t length,
                            rg_ceilings *out, rg_err *err)
{
    *out = (rg_ceilings){.tool = ""};
    out->items = RG_NEW(arena, rg_ceiling, RG_CEILINGS, err);
    char *copy = rg_arena_copy(arena, text, length, err);
    if (out->items == NULL || copy == NULL)
        return RG_ERR_LIMIT;
    const char *first = copy;
    while (isspace((unsigned char)*first))
        first++;
    if (*first == '{') {
        rg_node *root;
        RG_TRY(rg_doc_parse(arena, path, copy, length, true, &root, err));
        RG_TRY(rg_node_expect(root, RG_NODE_MAP, "roofline.json", err));
        RG_TRY(rg_ert_json(arena, root, out, err));
    } else if (strstr(copy, " EMP") != NULL) {
        RG_TRY(rg_ert_text(arena, path, copy, out, err));
    } else if (strstr(copy, "GB/s") != NULL && strstr(copy, "kB") != NULL) {
        RG_TRY(rg_sweep(arena, path, copy, out, err));
    }
    if (out->count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 1, 1},
                       "no ceilings: neither an ERT report ('... GFLOPs EMP') nor a cache sweep of "
                       "gpu-benches");
    rg_ceilings_doubt(out);
    return RG_OK;
}

rg_status rg_ceilings_load(rg_arena *arena, const char *path, rg_ceilings *out, rg_err *err)
{
    char *text;
    size_t length;
    RG_TRY(rg_file_read(arena, path, 16u << 20, &text, &length, err));
    return rg_ceilings_parse(arena, path, text, length, out, err);
}
