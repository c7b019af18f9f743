/* trace/workload_simai.c: workload text of ASTRA-sim 1 and SimAI.
 *
 * First line: a policy and "key: value" degrees; second: the number of layers; then a row a layer:
 * name, dependency (not used by the tools either), and for forward pass, input gradient and weight
 * gradient each the compute time in ns, the collective and its bytes; last the update time in ns.
 * (astra-sim/workload/Workload.cc of both.) Collectives of forward pass and input gradient block
 * the next layer; those of weight gradients only the end of the step. Bytes of all-gather and
 * reduce-scatter are those of the whole buffer. _EP, _DP_EP at the end of a collective's name give
 * the group; without it the first two passes use the tensor group and the third the data group.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "trace/workload_reader.h"

enum { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, PASSES };
enum { COLUMNS = 12, MOST_LAYERS = 1000000, MOST_WORD = 128 };

/* Policies whose groups follow from the file alone. */
typedef struct policy {
    const char *name;
    rg_work_group group[PASSES];
} policy;
static const policy policies[] = {
    {"HYBRID_TRANSFORMER_FWD_IN_BCKWD", {RG_GROUP_TENSOR, RG_GROUP_TENSOR, RG_GROUP_DATA}},
    {"HYBRID_TRANSFORMER", {RG_GROUP_TENSOR, RG_GROUP_TENSOR, RG_GROUP_DATA}},
    {"DATA", {RG_GROUP_ALL, RG_GROUP_ALL, RG_GROUP_ALL}},
    {"MICRO", {RG_GROUP_ALL, RG_GROUP_ALL, RG_GROUP_ALL}},
    {"MODEL", {RG_GROUP_ALL, RG_GROUP_ALL, RG_GROUP_ALL}},
    {"DISTRIBUTED_INFERENCE", {RG_GROUP_ALL, RG_GROUP_ALL, RG_GROUP_ALL}},
};
static const char *const other_policies[] = {
    "HYBRID_DLRM",       "HYBRID_DLRM_ENHANCED", "DLRM",
    "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA",    "HYBRID_CUSTOMIZED"};

typedef struct words {
    const char *at, *line_start;
    int line;
    const char *path;
} words;

typedef struct layer {
    const char *name;
    double time_s[PASSES], bytes[PASSES], update_s;
    const char *op[PASSES]; /* NULL: none */
    rg_work_group group[PASSES];
    rg_pos pos;
} layer;

static rg_pos here(const words *w)
{
    return (rg_pos){w->path, w->line, (int)(w->at - w->line_start) + 1};
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of this line into out; false at its end. */
static bool next_word(words *w, char out[MOST_WORD], rg_pos *pos)
{
    while (blank(*w->at))
        w->at++;
    *pos = here(w);
    size_t n = 0;
    for (; *w->at != '\0' && *w->at != '\n' && !blank(*w->at); w->at++)
        if (n < MOST_WORD - 1)
            out[n++] = *w->at;
    out[n] = '\0';
    return n > 0;
}

static bool next_line(words *w)
{
    w->at += strcspn(w->at, "\n");
    if (*w->at == '\0')
        return false;
    w->line_start = ++w->at;
    w->line++;
    return true;
}

static size_t first_word(const char *text, char out[MOST_WORD])
{
    const size_t n = strcspn(text, " \t\r\n");
    out[0] = '\0';
    if (n > 0 && n < MOST_WORD) {
        memcpy(out, text, n);
        out[n] = '\0';
    }
    return n;
}

static const policy *policy_of(const char *word)
{
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        if (strcmp(policies[i].name, word) == 0)
            return &policies[i];
    return NULL;
}

bool rg_work_is_simai(const char *text)
{
    char word[MOST_WORD];
    first_word(text, word);
    for (size_t i = 0; i < sizeof other_policies / sizeof *other_policies; i++)
        if (strcmp(other_policies[i], word) == 0)
            return true;
    return policy_of(word) != NULL;
}

static rg_status number(words *w, const char *what, double *out, rg_err *err)
{
    char word[MOST_WORD];
    rg_pos pos;
    if (!next_word(w, word, &pos))
        return rg_fail(err, RG_ERR_INPUT, pos, "the row ends before %s; a row has %d columns", what,
                       COLUMNS);
    if (!rg_text_to_real(word, out) || *out < 0)
        return rg_fail(err, RG_ERR_INPUT, pos, "%s is '%s', no number of 0 or more", what, word);
    return RG_OK;
}

/* "ALLTOALL_EP": operation and group. */
static rg_status collective(words *w, rg_work_group usual, const char **op, rg_work_group *group,
                            rg_err *err)
{
    static const struct {
        const char *name, *op;
    } known[] = {{"ALLREDUCE", "all_reduce"},
                 {"ALLGATHER", "all_gather"},
                 {"REDUCESCATTER", "reduce_scatter"},
                 {"ALLTOALL", "all_to_all"}};
    char word[MOST_WORD];
    rg_pos pos;
    if (!next_word(w, word, &pos))
        return rg_fail(err, RG_ERR_INPUT, pos,
                       "the row ends before a collective; a row has %d columns", COLUMNS);
    *op = NULL;
    *group = usual;
    if (strcmp(word, "NONE") == 0)
        return RG_OK;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t n = strlen(known[i].name);
        if (strncmp(word, known[i].name, n) != 0)
            continue;
        const char *end = word + n;
        if (*end == '\0' || strcmp(end, "_EP") == 0 || strcmp(end, "_DP_EP") == 0) {
            *op = known[i].op;
            if (*end != '\0')
                *group = strcmp(end, "_EP") == 0 ? RG_GROUP_EXPERT : RG_GROUP_DATA_EXPERT;
            return RG_OK;
        }
    }
    return rg_fail(
        err, RG_ERR_INPUT, pos,
        "unknown collective '%s'; NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, "
        "with _EP or _DP_EP behind or nothing",
        word);
}

static rg_status read_layer(rg_work_reader *r, words *w, const policy *p, layer *out, rg_err *err)
{
    static const char *const times[PASSES] = {"the forward time", "the input-gradient time",
                                              "the weight-gradient time"};
    char word[MOST_WORD];
    double unused;
    if (!next_word(w, word, &out->pos))
        return rg_fail(err, RG_ERR_INPUT, out->pos, "an empty row where a layer is expected");
    out->name = rg_arena_strdup(r->arena, word, err);
    if (out->name == NULL)
        return RG_ERR_LIMIT;
    rg_pos pos;
    if (!next_word(w, word, &pos) || !rg_text_to_real(word, &unused))
        return rg_fail(err, RG_ERR_INPUT, pos, "the layer's dependency, a number like -1, is '%s'",
                       word);
    for (int i = 0; i < PASSES; i++) {
        RG_TRY(number(w, times[i], &out->time_s[i], err));
        out->time_s[i] *= 1e-9;
        RG_TRY(collective(w, p->group[i], &out->op[i], &out->group[i], err));
        RG_TRY(number(w, "the bytes of a collective", &out->bytes[i], err));
        if (out->bytes[i] == 0)
            out->op[i] = NULL;
    }
    RG_TRY(number(w, "the update time", &out->update_s, err));
    out->update_s *= 1e-9;
    if (next_word(w, word, &pos))
        return rg_fail(err, RG_ERR_INPUT, pos, "'%s' behind the %d columns of a layer", word,
                       COLUMNS);
    return RG_OK;
}

/* ---- the graph ---- */

/* A node that follows `after` (0: nothing) and whose id goes to *id. Ids count from 1. */
static rg_status add(rg_work_reader *r, const layer *of, uint64_t after, rg_work_node **node,
                     uint64_t *id, rg_err *err)
{
    RG_TRY(rg_work_add(r, node, err));
    (*node)->id = *id = (uint64_t)r->work->count;
    (*node)->name = of->name;
    (*node)->pos = of->pos;
    if (after == 0)
        return RG_OK;
    uint64_t *list = RG_NEW(r->arena, uint64_t, 1, err);
    if (list == NULL)
        return RG_ERR_LIMIT;
    list[0] = after;
    (*node)->after = list;
    (*node)->after_count = 1;
    return RG_OK;
}

/* Compute, then the collective, of one layer in one pass. *last: what the next layer waits for. */
static rg_status add_pass(rg_work_reader *r, const layer *of, int pass, double time_s,
                          uint64_t *last, rg_err *err)
{
    rg_work_node *node;
    uint64_t id = *last;
    if (time_s > 0) {
        RG_TRY(add(r, of, *last, &node, &id, err));
        node->kind = RG_WORK_COMPUTE;
        node->time_s = time_s;
        *last = id;
    }
    if (of->op[pass] == NULL)
        return RG_OK;
    RG_TRY(add(r, of, *last, &node, &id, err));
    node->kind = RG_WORK_COMM;
    node->op = of->op[pass];
    node->bytes = of->bytes[pass];
    node->group = of->group[pass];
    if (pass != WEIGHT_GRADIENT)
        *last = id;
    return RG_OK;
}

static rg_status build(rg_work_reader *r, const layer *layers, int count, rg_err *err)
{
    uint64_t last = 0;
    for (int i = 0; i < count; i++)
        RG_TRY(add_pass(r, &layers[i], FORWARD, layers[i].time_s[FORWARD], &last, err));
    for (int i = count - 1; i >= 0; i--) {
        const layer *l = &layers[i];
        RG_TRY(add_pass(r, l, INPUT_GRADIENT, l->time_s[INPUT_GRADIENT], &last, err));
        RG_TRY(
            add_pass(r, l, WEIGHT_GRADIENT, l->time_s[WEIGHT_GRADIENT] + l->update_s, &last, err));
    }
    return RG_OK;
}

static rg_status read_head(rg_work_reader *r, words *w, const policy **p, rg_err *err)
{
    char word[MOST_WORD];
    rg_pos pos;
    next_word(w, word, &pos);
    *p = policy_of(word);
    if (*p == NULL)
        return rg_fail(
            err, RG_ERR_INPUT, pos,
            "policy '%s' lays its groups on dimensions of ASTRA-sim's network, which the "
            "file does not hold; HYBRID_TRANSFORMER_FWD_IN_BCKWD, DATA or MODEL would do",
            word);
    while (next_word(w, word, &pos)) {
        const struct {
            const char *key;
            int64_t *out;
        } degrees[] = {{"model_parallel_NPU_group:", &r->work->tensor},
                       {"ep:", &r->work->expert},
                       {"pp:", &r->work->pipeline},
                       {"all_gpus:", &r->work->ranks}};
        for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
            if (strcmp(word, degrees[i].key) != 0)
                continue;
            if (!next_word(w, word, &pos) || !rg_text_to_int(word, degrees[i].out) ||
                *degrees[i].out < 1)
                return rg_fail(err, RG_ERR_INPUT, pos, "%s '%s' is no number of ranks",
                               degrees[i].key, word);
            break;
        }
        double bytes;
        if ((strcmp(word, "pp_comm:") == 0 || strcmp(word, "pp_comm") == 0) &&
            next_word(w, word, &pos) && rg_text_to_real(word, &bytes) && bytes > 0)
            RG_TRY(rg_work_note(r, err,
                                "pp_comm %.0f B between pipeline stages is left out, as are "
                                "bubbles: this is the work of one stage",
                                bytes));
    }
    return RG_OK;
}

rg_status rg_work_read_simai(rg_work_reader *r, rg_err *err)
{
    words w = {.at = r->text, .line_start = r->text, .line = 1, .path = r->path};
    const policy *p;
    char word[MOST_WORD];
    rg_pos pos;
    int64_t count = 0;
    r->work->tool = "simai";
    RG_TRY(read_head(r, &w, &p, err));
    if (!next_line(&w) || !next_word(&w, word, &pos) || !rg_text_to_int(word, &count) ||
        count < 1 || count > MOST_LAYERS)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){r->path, 2, 1},
                       "the second line is the number of layers, 1 to %d", MOST_LAYERS);
    layer *layers = RG_NEW(r->arena, layer, count, err);
    if (layers == NULL)
        return RG_ERR_LIMIT;
    for (int64_t i = 0; i < count; i++) {
        if (!next_line(&w) || (*w.at == '\0'))
            return rg_fail(err, RG_ERR_INPUT, (rg_pos){r->path, w.line, 1},
                           "the file ends after %lld of %lld layers", (long long)i,
                           (long long)count);
        RG_TRY(read_layer(r, &w, p, &layers[i], err));
    }
    while (next_line(&w))
        if (next_word(&w, word, &pos))
            return rg_fail(err, RG_ERR_INPUT, pos, "more rows than the %lld layers of line 2",
                           (long long)count);
    return build(r, layers, (int)count, err);
}
