/* trace/run_nvbench.c: nvbench's --json and --jsonbin output.
 *
 * benchmarks[].states[] hold axis_values[] and summaries[], each a tag with data[] of name, type
 * and value; 64-bit values are strings (file version 1), plain numbers before. Samples lie in side
 * files of little-endian float32 seconds, named by the summary nv/json/bin:nv/cold/sample_times; a
 * run kept without them still has its quartiles (newer) or mean and relative deviation (older).
 * nvbench flushes L2 before each cold sample. Layout read in nvbench/json_printer.cu and
 * nvbench/detail/ measure_cold.cu of the public repository.
 */
// SPDX-License-Identifier: Apache-2.0
#include "trace/run_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/file.h"
#include "core/text.h"

/* The named value of a summary: data[] (version 1), values[] or the map itself (older). */
static rg_node *rg_nvbench_value(rg_node *summary, const char *name)
{
    static const char *const lists[] = {"data", "values", NULL};
    if (summary->kind != RG_NODE_MAP)
        return NULL;
    for (const char *const *key = lists; *key != NULL; key++) {
        rg_node *list = rg_json_child(summary, *key, RG_NODE_LIST);
        for (rg_node *n = list == NULL ? NULL : list->first; n != NULL; n = n->next)
            if (n->kind == RG_NODE_MAP && strcmp(rg_json_text(n, "name"), name) == 0)
                return rg_map_find(n, "value");
    }
    return rg_map_find(summary, name);
}

static rg_node *rg_nvbench_summary(rg_node *state, const char *tag)
{
    rg_node *summaries = rg_map_find(state, "summaries");
    if (summaries == NULL || summaries->kind == RG_NODE_SCALAR)
        return NULL;
    for (rg_node *n = summaries->first; n != NULL; n = n->next) {
        if (n->kind != RG_NODE_MAP)
            continue;
        const char *own = summaries->kind == RG_NODE_MAP ? n->key : rg_json_text(n, "tag");
        if (strcmp(own, tag) == 0)
            return n;
    }
    return NULL;
}

/* NaN when the summary is not there; *given tells whether it was, *bad whether it held no number.
 */
static double rg_nvbench_number(rg_node *state, const char *tag, bool *given)
{
    rg_node *summary = rg_nvbench_summary(state, tag);
    const rg_node *value = summary == NULL ? NULL : rg_nvbench_value(summary, "value");
    double number;
    if (given != NULL)
        *given = value != NULL;
    if (value == NULL || value->kind != RG_NODE_SCALAR || !rg_text_to_real(value->text, &number) ||
        !isfinite(number))
        return NAN;
    return number;
}

static rg_status rg_nvbench_problem(rg_reader *r, rg_node *state, const char **out, rg_err *err)
{
    const char *text = "";
    rg_node *axes = rg_json_child(state, "axis_values", RG_NODE_LIST);
    for (rg_node *n = axes == NULL ? NULL : axes->first; n != NULL; n = n->next) {
        if (n->kind != RG_NODE_MAP)
            continue;
        text = rg_arena_printf(r->arena, err, "%s%s%s=%s", text, text[0] ? " " : "",
                               rg_json_text(n, "name"), rg_json_text(n, "value"));
        if (text == NULL)
            return RG_ERR_LIMIT;
    }
    if (text[0] == '\0')
        text = rg_json_text(state, "name");
    *out = text;
    return RG_OK;
}

/* The side file as named, else beside the JSON file under the same folder name. */
static rg_status rg_nvbench_side(rg_reader *r, const char *name, const char **out, rg_err *err)
{
    *out = NULL;
    const char *base = strrchr(name, '/');
    if (base != NULL && base > name) {
        const char *folder = base;
        while (folder > name && folder[-1] != '/')
            folder--;
        base = folder;
    } else {
        base = name;
    }
    const char *slash = strrchr(r->path, '/');
    const int dir = slash == NULL ? 0 : (int)(slash - r->path) + 1;
    const char *beside = rg_arena_printf(r->arena, err, "%.*s%s", dir, r->path, base);
    if (beside == NULL)
        return RG_ERR_LIMIT;
    if (strstr(name, "..") != NULL)
        return RG_OK;
    if (rg_file_exists(beside))
        *out = beside;
    else if (rg_file_exists(name))
        *out = name;
    return RG_OK;
}

static rg_status rg_nvbench_samples(rg_reader *r, rg_node *state, rg_run_entry *e, rg_err *err)
{
    rg_node *summary = rg_nvbench_summary(state, "nv/json/bin:nv/cold/sample_times");
    rg_node *name = summary == NULL ? NULL : rg_nvbench_value(summary, "filename");
    if (name == NULL || name->kind != RG_NODE_SCALAR || name->text[0] == '\0')
        return RG_OK;
    const char *path;
    RG_TRY(rg_nvbench_side(r, name->text, &path, err));
    if (path == NULL)
        return rg_reader_note(
            r, err, "sample files such as '%s' are not here; the summaries are used", name->text);
    char *bytes;
    size_t length;
    RG_TRY(rg_file_read(r->arena, path, 64u << 20, &bytes, &length, err));
    const rg_node *size = rg_nvbench_value(summary, "size");
    int64_t expected;
    if (size != NULL && size->kind == RG_NODE_SCALAR && rg_text_to_int(size->text, &expected) &&
        (expected < 0 || (size_t)expected * 4 != length))
        return rg_fail(err, RG_ERR_INPUT, size->pos,
                       "'%s' samples announced, but '%s' has %zu bytes, not 4 for each", size->text,
                       path, length);
    for (size_t i = 0; i + 4 <= length; i += 4) {
        const unsigned char *b = (const unsigned char *)bytes + i;
        const uint32_t bits =
            (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        float value;
        memcpy(&value, &bits, sizeof value);
        RG_TRY(rg_reader_sample(r, e, (double)value, err));
    }
    return RG_OK;
}

static void rg_nvbench_summaries(rg_node *state, rg_run_entry *e)
{
    const char *base = "nv/cold/time/gpu/";
    bool given, any = false;
    double n = rg_nvbench_number(state, "nv/cold/sample_size", NULL);
    e->mean = rg_nvbench_number(state, "nv/cold/time/gpu/mean", &given);
    any = given;
    if (!any) { /* batch only, or host time only */
        base = "nv/batch/time/gpu/";
        e->mean = rg_nvbench_number(state, "nv/batch/time/gpu/mean", &given);
        n = rg_nvbench_number(state, "nv/batch/sample_size", NULL);
        any = given;
        e->cache = "warm";
    }
    if (!any) {
        base = "nv/cpu_only/time/cpu/";
        e->mean = rg_nvbench_number(state, "nv/cpu_only/time/cpu/mean", &given);
        n = rg_nvbench_number(state, "nv/cpu_only/sample_size", NULL);
        any = given;
        e->cache = "";
    }
    char tag[96];
#define TAG(name) (snprintf(tag, sizeof tag, "%s%s", base, name), tag)
    e->count = n;
    e->median = rg_nvbench_number(state, TAG("median"), NULL);
    e->q1 = rg_nvbench_number(state, TAG("q1"), NULL);
    e->q3 = rg_nvbench_number(state, TAG("q3"), NULL);
    e->least = rg_nvbench_number(state, TAG("min"), NULL);
    e->most = rg_nvbench_number(state, TAG("max"), NULL);
    e->deviation = rg_nvbench_number(state, TAG("stdev/absolute"), NULL);
    if (isnan(e->deviation))
        e->deviation = rg_nvbench_number(state, TAG("stdev/relative"), NULL) * e->mean;
#undef TAG
    if (!any)
        e->unusable = "no time among the summaries";
    else if (!(e->mean > 0))
        e->unusable = "the mean time is no number: no sample was valid";
    else if (n < 1)
        e->unusable = "zero samples";
    e->clock_hz = rg_nvbench_number(state, "nv/cold/sm_clock_rate/mean", NULL);
    e->model_bytes = rg_nvbench_number(state, "nv/cold/bw/global/bytes_per_second", NULL) * e->mean;
}

static rg_status rg_nvbench_state(rg_reader *r, const char *bench, rg_node *state, int devices,
                                  rg_err *err)
{
    const char *problem;
    RG_TRY(rg_nvbench_problem(r, state, &problem, err));
    const char *device = rg_json_text(state, "device");
    if (devices > 1 && device[0] != '\0') {
        problem =
            rg_arena_printf(r->arena, err, "%s%sdevice=%s", problem, problem[0] ? " " : "", device);
        if (problem == NULL)
            return RG_ERR_LIMIT;
    }
    const int before = r->run->count;
    rg_run_entry *e;
    RG_TRY(rg_reader_entry(r, bench, problem, "", state->pos, &e, err));
    if (r->run->count == before)
        return rg_fail(err, RG_ERR_INPUT, state->pos, "benchmark '%s' has two states '%s'", bench,
                       problem);
    e->cache = "cold";
    if (rg_text_same(rg_json_text(state, "is_skipped"), "true")) {
        const char *why = rg_json_text(state, "skip_reason");
        e->unusable = why[0] != '\0' ? why : "skipped";
        e->left_out = true;
        return RG_OK;
    }
    rg_nvbench_summaries(state, e);
    if (e->unusable == NULL)
        RG_TRY(rg_nvbench_samples(r, state, e, err));
    return RG_OK;
}

rg_status rg_run_read_nvbench(rg_reader *r, rg_node *root, rg_err *err)
{
    rg_run *run = r->run;
    run->tool = "nvbench";
    int devices = 0;
    rg_node *list = rg_json_child(root, "devices", RG_NODE_LIST);
    for (rg_node *n = list == NULL ? NULL : list->first; n != NULL; n = n->next) {
        if (n->kind != RG_NODE_MAP)
            continue;
        if (devices++ == 0)
            run->device = rg_json_text(n, "name");
        const char *ecc = rg_json_text(n, "ecc_state");
        if (ecc[0] != '\0')
            run->ecc = rg_text_same(ecc, "true") ? "on" : "off";
    }
    rg_node *benchmarks = rg_json_child(root, "benchmarks", RG_NODE_LIST);
    for (rg_node *b = benchmarks == NULL ? NULL : benchmarks->first; b != NULL; b = b->next) {
        RG_TRY(rg_node_expect(b, RG_NODE_MAP, "benchmark", err));
        const char *name = rg_json_text(b, "name");
        rg_node *states = rg_json_child(b, "states", RG_NODE_LIST);
        for (rg_node *s = states == NULL ? NULL : states->first; s != NULL; s = s->next) {
            RG_TRY(rg_node_expect(s, RG_NODE_MAP, "state", err));
            RG_TRY(rg_nvbench_state(r, name, s, devices, err));
        }
    }
    return RG_OK;
}
