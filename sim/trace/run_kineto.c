/* trace/run_kineto.c: PyTorch profiler (Kineto) and other Chrome traces as run records.
 *
 * Complete events (ph X) of category "kernel" are launches: durations in microseconds are the
 * samples of their name, grid and block. A trace without any, as a profile of the host alone is,
 * gives its cpu_op events, with input sizes as the problem, and says so.
 */
// SPDX-License-Identifier: Apache-2.0
#include "trace/run_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

/* [64, 1, 1] as "64,1,1"; nested lists keep their brackets. */
static const char *rg_kineto_list(rg_reader *r, const rg_node *list, int depth, rg_err *err)
{
    const char *text = "";
    for (const rg_node *n = list->first; n != NULL && text != NULL; n = n->next) {
        if (n->kind == RG_NODE_SCALAR) {
            text = rg_arena_printf(r->arena, err, "%s%s%s", text, n == list->first ? "" : ",",
                                   n->text);
        } else if (n->kind == RG_NODE_LIST && depth < 4) {
            const char *inner = rg_kineto_list(r, n, depth + 1, err);
            if (inner == NULL)
                return NULL;
            text = rg_arena_printf(r->arena, err, "%s%s[%s]", text, n == list->first ? "" : ",",
                                   inner);
        }
    }
    return text;
}

static rg_status rg_kineto_problem(rg_reader *r, rg_node *arguments, bool kernel, const char **out,
                                   rg_err *err)
{
    static const char *const keys[2][2] = {{"Input Dims", "Concrete Inputs"}, {"grid", "block"}};
    const char *text = "";
    *out = "";
    if (arguments == NULL)
        return RG_OK;
    for (int i = 0; i < (kernel ? 2 : 1); i++) {
        rg_node *list = rg_json_child(arguments, keys[kernel][i], RG_NODE_LIST);
        const char *inner = list == NULL ? "" : rg_kineto_list(r, list, 0, err);
        if (inner == NULL)
            return RG_ERR_LIMIT;
        if (inner[0] == '\0')
            continue;
        text = rg_arena_printf(r->arena, err, "%s%s%s=(%s)", text, text[0] ? " " : "",
                               kernel ? keys[1][i] : "dims", inner);
        if (text == NULL)
            return RG_ERR_LIMIT;
    }
    *out = text;
    return RG_OK;
}

static rg_status rg_kineto_event(rg_reader *r, rg_node *event, bool kernel, rg_err *err)
{
    rg_node *arguments = rg_json_child(event, "args", RG_NODE_MAP);
    const char *problem, *name = rg_json_text(event, "name");
    if (name[0] == '\0')
        return RG_OK;
    rg_run_entry *e;
    RG_TRY(rg_kineto_problem(r, arguments, kernel, &problem, err));
    RG_TRY(rg_reader_entry(r, name, problem, "", event->pos, &e, err));
    RG_TRY(rg_reader_sample(r, e, rg_json_number(event, "dur") * 1e-6, err));
    if (arguments == NULL || !kernel)
        return RG_OK;
    const double registers = rg_json_number(arguments, "registers per thread");
    const double shared = rg_json_number(arguments, "shared memory");
    const double blocks = rg_json_number(arguments, "blocks per SM");
    if (!isnan(registers))
        e->registers = registers;
    if (!isnan(shared))
        e->shared_bytes = shared;
    (void)blocks; /* of the grid over all SMs, not what fits one */
    return RG_OK;
}

rg_status rg_run_read_kineto(rg_reader *r, rg_node *root, rg_err *err)
{
    r->run->tool = "kineto";
    rg_node *devices = rg_json_child(root, "deviceProperties", RG_NODE_LIST);
    if (devices != NULL && devices->first != NULL && devices->first->kind == RG_NODE_MAP)
        r->run->device = rg_json_text(devices->first, "name");
    rg_node *events = rg_json_child(root, "traceEvents", RG_NODE_LIST);
    for (int pass = 0; pass < 2 && r->run->count == 0; pass++) {
        const char *wanted = pass == 0 ? "kernel" : "cpu_op";
        for (rg_node *n = events == NULL ? NULL : events->first; n != NULL; n = n->next)
            if (n->kind == RG_NODE_MAP && strcmp(rg_json_text(n, "ph"), "X") == 0 &&
                rg_text_same(rg_json_text(n, "cat"), wanted))
                RG_TRY(rg_kineto_event(r, n, pass == 0, err));
        if (pass == 1 && r->run->count > 0)
            RG_TRY(rg_reader_note(r, err,
                                  "no GPU kernels in the trace: host operators are taken, and "
                                  "their times are those of the host"));
    }
    return RG_OK;
}
