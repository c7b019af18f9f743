/* trace/run_probe.c: run records of ridge-probe, schema "ridge.probe/1".
 *
 *   device{name, driver, ecc}  clock{locked, throttle}  kernels[]{name, problem{}, dtype, cache,
 *   samples_us[], processes[], median_us, q1_us, q3_us, min_us, cycles, clock_hz, model_bytes,
 *   dram_bytes, flops, registers, spill_bytes, shared_bytes, blocks_per_sm, throttle, check}
 * Keys beyond these are left alone, so that an older ridge reads a newer record.
 */
// SPDX-License-Identifier: Apache-2.0
#include "trace/run_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

/* A map {"m": 8192, "n": 8192} or a string, as "m=8192 n=8192" in the order of the file. */
static rg_status rg_probe_problem(rg_reader *r, rg_node *kernel, const char **out, rg_err *err)
{
    *out = "";
    rg_node *problem = rg_map_find(kernel, "problem");
    if (problem == NULL || problem->kind == RG_NODE_LIST)
        return RG_OK;
    if (problem->kind == RG_NODE_SCALAR) {
        *out = rg_node_is_null(problem) ? "" : problem->text;
        return RG_OK;
    }
    const char *text = "";
    for (rg_node *n = problem->first; n != NULL; n = n->next) {
        if (n->kind != RG_NODE_SCALAR)
            continue;
        text =
            rg_arena_printf(r->arena, err, "%s%s%s=%s", text, text[0] ? " " : "", n->key, n->text);
        if (text == NULL)
            return RG_ERR_LIMIT;
    }
    *out = text;
    return RG_OK;
}

static double rg_probe_seconds(rg_node *map, const char *us, const char *seconds)
{
    const double value = rg_json_number(map, us);
    return isnan(value) ? rg_json_number(map, seconds) : value * 1e-6;
}

/* "none", "", false, 0, "0x0" say that nothing held the clock down. */
static const char *rg_probe_throttle(rg_node *map)
{
    static const char *const keys[] = {"throttle", "throttled", "throttle_reasons", NULL};
    for (const char *const *key = keys; *key != NULL; key++) {
        rg_node *node = rg_map_find(map, *key);
        if (node != NULL && node->kind == RG_NODE_LIST)
            node = node->first;
        if (node == NULL || node->kind != RG_NODE_SCALAR || rg_node_is_null(node))
            continue;
        const char *t = node->text;
        if (t[0] == '\0' || rg_text_same(t, "none") || rg_text_same(t, "false") ||
            rg_text_same(t, "no") || rg_text_same(t, "gpu_idle") ||
            rg_text_same(t, "applications_clocks"))
            continue;
        double number;
        if (rg_text_to_real(t, &number) && number == 0)
            continue;
        return rg_text_same(t, "true") ? "throttled" : t;
    }
    return NULL;
}

static rg_status rg_probe_samples(rg_reader *r, rg_node *kernel, rg_run_entry *e, rg_err *err)
{
    double factor = 1e-6;
    rg_node *list = rg_json_child(kernel, "samples_us", RG_NODE_LIST);
    if (list == NULL) {
        list = rg_json_child(kernel, "samples_s", RG_NODE_LIST);
        factor = 1;
    }
    if (list == NULL)
        return RG_OK;
    rg_node *from = rg_json_child(kernel, "processes", RG_NODE_LIST);
    const rg_node *process = from == NULL ? NULL : from->first;
    for (const rg_node *n = list->first; n != NULL; n = n->next) {
        double value;
        if (n->kind != RG_NODE_SCALAR || !rg_text_to_real(n->text, &value)) {
            e->unusable = "a sample is not a number";
            return RG_OK;
        }
        RG_TRY(rg_reader_sample(r, e, value * factor, err));
        int64_t id;
        if (process != NULL && e->sample_count > 0 && process->kind == RG_NODE_SCALAR &&
            rg_text_to_int(process->text, &id) && id >= 0 && id < 1000000) {
            e->process[e->sample_count - 1] = (int)id;
            if (id + 1 > e->processes)
                e->processes = (int)id + 1;
        }
        if (process != NULL)
            process = process->next;
    }
    if (e->sample_count == 0 && e->unusable == NULL)
        e->unusable = "zero samples";
    return RG_OK;
}

static void rg_probe_facts(rg_node *kernel, rg_run_entry *e)
{
    e->median = rg_probe_seconds(kernel, "median_us", "median_s");
    e->mean = rg_probe_seconds(kernel, "mean_us", "mean_s");
    if (isnan(e->median) && isnan(e->mean))
        e->median = rg_probe_seconds(kernel, "time_us", "time_s");
    e->q1 = rg_probe_seconds(kernel, "q1_us", "q1_s");
    e->q3 = rg_probe_seconds(kernel, "q3_us", "q3_s");
    e->least = rg_probe_seconds(kernel, "min_us", "min_s");
    e->most = rg_probe_seconds(kernel, "max_us", "max_s");
    e->deviation = rg_probe_seconds(kernel, "stdev_us", "stdev_s");
    e->count = rg_json_number(kernel, "sample_count");
    e->cycles = rg_json_number(kernel, "cycles");
    e->clock_hz = rg_json_number(kernel, "clock_hz");
    if (isnan(e->clock_hz))
        e->clock_hz = rg_json_number(kernel, "clock_mhz") * 1e6;
    e->model_bytes = rg_json_number(kernel, "model_bytes");
    e->dram_bytes = rg_json_number(kernel, "dram_bytes");
    e->flops = rg_json_number(kernel, "flops");
    e->registers = rg_json_number(kernel, "registers");
    e->spill_bytes = rg_json_number(kernel, "spill_bytes");
    e->shared_bytes = rg_json_number(kernel, "shared_bytes");
    e->blocks_per_sm = rg_json_number(kernel, "blocks_per_sm");
}

static rg_status rg_probe_kernel(rg_reader *r, rg_node *kernel, rg_err *err)
{
    RG_TRY(rg_node_expect(kernel, RG_NODE_MAP, "kernel", err));
    const char *problem, *name = rg_json_text(kernel, "name");
    if (name[0] == '\0')
        name = rg_json_text(kernel, "kernel");
    RG_TRY(rg_probe_problem(r, kernel, &problem, err));
    rg_run_entry *e;
    const int before = r->run->count;
    RG_TRY(rg_reader_entry(r, name, problem, rg_json_text(kernel, "dtype"), kernel->pos, &e, err));
    if (r->run->count == before)
        return rg_fail(err, RG_ERR_INPUT, kernel->pos,
                       "kernel '%s' with problem '%s' is here twice; name each problem apart", name,
                       problem);
    rg_probe_facts(kernel, e);
    e->cache = rg_json_text(kernel, "cache");
    if (e->cache[0] == '\0')
        e->cache = rg_json_text(kernel, "cache_state");
    e->throttled = rg_probe_throttle(kernel);
    const char *check = rg_json_text(kernel, "check");
    if (rg_text_same(check, "failed") || rg_text_same(check, "wrong") ||
        rg_text_same(rg_json_text(kernel, "correct"), "false"))
        e->wrong = "the result differs from the reference";
    const char *failed = rg_json_text(kernel, "error");
    if (failed[0] == '\0')
        failed = rg_json_text(kernel, "skipped");
    if (failed[0] != '\0' && !rg_text_same(failed, "false"))
        e->unusable = failed;
    RG_TRY(rg_probe_samples(r, kernel, e, err));
    const bool given = !isnan(e->median) || !isnan(e->mean);
    if (e->sample_count == 0 && e->unusable == NULL) {
        if (!given)
            e->unusable = isnan(e->registers) && isnan(e->spill_bytes) && isnan(e->blocks_per_sm)
                              ? "neither samples nor a time"
                              : "resources only, no time";
        else if (!((isnan(e->median) || e->median > 0) && (isnan(e->mean) || e->mean > 0)))
            e->unusable = "the time is not positive";
    }
    return RG_OK;
}

/* Kernels that the probe left out say why: {name, dtype, problem, reason}. */
static rg_status rg_probe_not_run(rg_reader *r, rg_node *kernel, rg_err *err)
{
    if (kernel->kind != RG_NODE_MAP)
        return RG_OK;
    const char *problem, *reason = rg_json_text(kernel, "reason");
    rg_run_entry *e;
    RG_TRY(rg_probe_problem(r, kernel, &problem, err));
    const int before = r->run->count;
    RG_TRY(rg_reader_entry(r, rg_json_text(kernel, "name"), problem, rg_json_text(kernel, "dtype"),
                           kernel->pos, &e, err));
    e->left_out = r->run->count > before;
    if (r->run->count > before)
        e->unusable = reason[0] != '\0' ? reason : "not run";
    return RG_OK;
}

rg_status rg_run_read_probe(rg_reader *r, rg_node *root, rg_err *err)
{
    rg_run *run = r->run;
    run->tool = "ridge-probe";
    rg_node *schema = rg_map_find(root, "schema");
    if (schema != NULL && schema->kind == RG_NODE_SCALAR &&
        strcmp(schema->text, "ridge.probe/1") != 0)
        return rg_fail(err, RG_ERR_INPUT, schema->pos,
                       "schema '%s' is not known here; this ridge reads 'ridge.probe/1'",
                       schema->text);
    const char *producer = rg_json_text(root, "tool");
    if (producer[0] != '\0')
        run->tool = producer;
    run->date = rg_json_text(root, "date");
    run->command = rg_json_text(root, "command");
    run->commit = rg_json_text(root, "commit");
    const char *skipped = rg_json_text(root, "skipped");
    const char *throttled = rg_probe_throttle(root);
    double clock_hz = NAN; /* of the whole run, for kernels that give none */
    rg_node *device = rg_json_child(root, "device", RG_NODE_MAP);
    if (device != NULL) {
        run->device = rg_json_text(device, "name");
        run->driver = rg_json_text(device, "driver");
        if (run->driver[0] == '\0')
            run->driver = rg_json_text(device, "driver_version");
        const char *ecc = rg_json_text(device, "ecc");
        run->ecc = rg_text_same(ecc, "true") || rg_text_same(ecc, "on")     ? "on"
                   : rg_text_same(ecc, "false") || rg_text_same(ecc, "off") ? "off"
                                                                            : "";
        if (throttled == NULL)
            throttled = rg_probe_throttle(device);
    } else {
        run->device = rg_json_text(root, "device");
    }
    rg_node *clock = rg_json_child(root, "clock", RG_NODE_MAP);
    if (clock == NULL && device != NULL)
        clock = rg_json_child(device, "clock", RG_NODE_MAP);
    if (clock != NULL) {
        const char *locked = rg_json_text(clock, "locked");
        const char *words = rg_json_text(clock, "state");
        run->clocks = rg_text_same(locked, "true")    ? "locked"
                      : rg_text_same(locked, "false") ? "unlocked"
                      : rg_text_has(words, "not locked") || rg_text_has(words, "unlocked")
                          ? "unlocked"
                      : rg_text_has(words, "locked") ? "locked"
                                                     : words;
        if (throttled == NULL)
            throttled = rg_probe_throttle(clock);
        static const char *const keys[] = {"sm_clock_hz", "clock_hz",  "sm_hz",
                                           "sm_mhz",      "clock_mhz", NULL};
        for (const char *const *key = keys; *key != NULL && isnan(clock_hz); key++)
            clock_hz = rg_json_number(clock, *key) * (rg_text_has(*key, "mhz") ? 1e6 : 1);
    }
    rg_node *kernels = rg_json_child(root, "kernels", RG_NODE_LIST);
    if (kernels == NULL && skipped[0] == '\0')
        return rg_fail(err, RG_ERR_INPUT, root->pos, "missing key 'kernels'");
    for (rg_node *k = kernels == NULL ? NULL : kernels->first; k != NULL; k = k->next)
        RG_TRY(rg_probe_kernel(r, k, err));
    for (int i = 0; i < run->count; i++)
        if (isnan(run->entries[i].clock_hz))
            run->entries[i].clock_hz = clock_hz;
    rg_node *not_run = rg_json_child(root, "not_run", RG_NODE_LIST);
    for (rg_node *k = not_run == NULL ? NULL : not_run->first; k != NULL; k = k->next)
        RG_TRY(rg_probe_not_run(r, k, err));
    if (device != NULL && rg_text_same(rg_json_text(device, "emulated"), "true"))
        RG_TRY(rg_reader_note(r, err, "measured on an emulated device: times mean nothing"));
    for (int i = 0; i < run->count && throttled != NULL; i++)
        if (run->entries[i].throttled == NULL)
            run->entries[i].throttled = throttled;
    if (skipped[0] != '\0' && !rg_text_same(skipped, "false") && run->count == 0)
        run->skipped = skipped;
    return RG_OK;
}
