/* serve/kernel_times.c: interpolation of given operator times. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "serve/kernel_tables.h"

double rg_line_at(const rg_line *l, double x)
{
    if (l->count == 0)
        return 0;
    if (l->count == 1)
        return l->y[0];
    int low = 0, high = l->count - 1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (l->x[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    if (x < l->x[0])
        return l->y[0]; /* below the grid: the least size */
    const double t = (x - l->x[low]) / (l->x[high] - l->x[low]);
    const double y = l->y[low] + (l->y[high] - l->y[low]) * t;
    return y > 0 ? y : 0;
}

const char *rg_kernel_times_note(const rg_kernel_times *times)
{
    return times->note;
}

void rg_kernel_times_set_reduce(rg_kernel_times *times, double latency_s, double bytes_per_s)
{
    times->use.reduce_latency_s = latency_s;
    times->use.reduce_bytes_per_s = bytes_per_s;
}

/* ---- looking up */

/* Decodes under one prefill chunk (or none): by their number, then their length. */
static double decodes_at(const rg_ragged *node, double decodes, double kv)
{
    int low, high;
    double weight;
    rg_ragged_bracket(node, 0, decodes, &low, &high, &weight);
    const double a = rg_ragged_at(&node->children[low], &kv);
    return weight == 0 ? a : a + (rg_ragged_at(&node->children[high], &kv) - a) * weight;
}

/* Whether decodes were measured beside this chunk at all. */
static bool has_decodes(const rg_ragged *past)
{
    return past->count > 0 && past->children[past->count - 1].at > 0;
}

/* The past axis of one chunk; a past below the least, even below zero, carries the line on. */
static double past_at(const rg_ragged *chunk, double past, double decodes, double kv)
{
    int low, high;
    double weight;
    rg_ragged_bracket(chunk, 0, past, &low, &high, &weight);
    const rg_ragged *first = &chunk->children[low], *second = &chunk->children[high];
    if (past < first->at && high > low)
        weight = (past - first->at) / (second->at - first->at);
    if (decodes > 0 && !has_decodes(first))
        return NAN;
    const double a = decodes_at(first, decodes, kv);
    if (weight == 0)
        return a;
    if (decodes > 0 && !has_decodes(second))
        return NAN;
    return a + (decodes_at(second, decodes, kv) - a) * weight;
}

/* At a fixed key length K = past + chunk / 2 the work of a chunk is chunk x K, so between two chunk
 * sizes the time is nearly linear; past = K - chunk / 2 differs at both ends. */
static double chunk_at(const rg_ragged *root, double chunk, double past, double decodes, double kv)
{
    const double key = past + chunk / 2;
    const int first = root->count > 1 && root->children[0].at == 0 && decodes == 0 ? 1 : 0;
    int low, high;
    double weight;
    if (root->children[first].at == 0 && decodes == 0)
        return NAN; /* no chunk was measured */
    if (chunk < root->children[first].at)
        chunk = root->children[first].at;
    rg_ragged_bracket(root, first, chunk, &low, &high, &weight);
    const rg_ragged *a = &root->children[low], *b = &root->children[high];
    const double at_a = past_at(a, a->at == 0 ? 0 : key - a->at / 2, decodes, kv);
    if (weight == 0)
        return at_a;
    const double at_b = past_at(b, b->at == 0 ? 0 : key - b->at / 2, decodes, kv);
    return at_a + (at_b - at_a) * weight;
}

static double decode_only(const rg_ragged *root, double decodes, double kv)
{
    const rg_ragged *none = &root->children[0];
    return none->at == 0 ? past_at(none, 0, decodes, kv) : NAN;
}

/* Several chunks in one kernel: like one of their tokens with their mean key length; where that
 * would have less than no past, chunk by chunk. */
static double attention_of(const rg_kernel_times *t, const rg_pass *pass)
{
    const rg_ragged *root = &t->attention;
    const double decodes = (double)pass->decodes;
    const double kv = pass->decodes ? pass->decode_kv_tokens / decodes : 0;
    double tokens = 0, work = 0;
    for (int i = 0; i < pass->chunk_count; i++) {
        const double c = (double)pass->chunks[i].new_tokens,
                     k = (double)pass->chunks[i].past_tokens;
        tokens += c;
        work += c * (k + c / 2);
    }
    if (tokens == 0)
        return decode_only(root, decodes, kv);
    const double past = work / tokens - tokens / 2;
    if (pass->decodes > 0 && past >= 0 && !t->apart) {
        const double together = chunk_at(root, tokens, past, decodes, kv);
        if (!isnan(together))
            return together;
    }
    double prefill = 0;
    if (past >= 0) {
        prefill = chunk_at(root, tokens, past, 0, 0);
    } else {
        for (int i = 0; i < pass->chunk_count; i++)
            prefill += chunk_at(root, (double)pass->chunks[i].new_tokens,
                                (double)pass->chunks[i].past_tokens, 0, 0) -
                       (i > 0 && !t->apart ? t->attention_floor : 0);
    }
    if (pass->decodes == 0)
        return prefill;
    return prefill + decode_only(root, decodes, kv) - (t->apart ? 0 : t->attention_floor);
}

int64_t rg_graph_tokens(int64_t tokens, int64_t largest)
{
    if (tokens > largest || tokens <= 2)
        return tokens;
    const int64_t padded = tokens <= 4     ? 4
                           : tokens <= 256 ? (tokens + 7) / 8 * 8
                                           : (tokens + 15) / 16 * 16;
    return padded <= largest ? padded : tokens;
}

/* Experts touched by so many tokens when routing is even: E (1 - (1 - k/E)^t). */
static double touched(const rg_kernel_times_use *use, double tokens)
{
    const double experts = (double)use->experts;
    return experts * (1 - pow(1 - (double)use->top_k / experts, tokens));
}

rg_kernel_times_parts rg_kernel_times_of(const rg_kernel_times *t, const rg_pass *pass)
{
    const rg_kernel_times_use *use = &t->use;
    int64_t tokens = pass->decodes * (pass->tokens_per_decode > 0 ? pass->tokens_per_decode : 1);
    for (int i = 0; i < pass->chunk_count; i++)
        tokens += pass->chunks[i].new_tokens;
    const int64_t logits = pass->logit_rows ? pass->logit_rows : pass->decodes + pass->chunk_count;
    const double padded =
        (double)(use->pad_to_graphs ? rg_graph_tokens(tokens, use->largest_graph) : tokens);
    rg_kernel_times_parts parts = {.dense_s = rg_line_at(&t->dense, padded),
                                   .head_s = rg_line_at(&t->heads, (double)logits)};
    double attention = attention_of(t, pass);
    if (!(attention > t->attention_floor)) /* also where the table has no rows near */
        attention = t->attention_floor;
    parts.attention_s = attention * (double)use->layers;
    if (use->moe_layers > 0) {
        const double at[] = {padded, touched(use, (double)tokens)};
        const double one = rg_ragged_at(&t->moe, at);
        parts.moe_s = (one > 0 ? one : 0) * (double)use->moe_layers;
    }
    if (use->tp > 1 && use->reduce_bytes_per_s > 0) {
        const double n = (double)use->tp, bytes = padded * (double)use->hidden * 2;
        const double one =
            use->reduce_latency_s + bytes * 2 * (n - 1) / n / use->reduce_bytes_per_s;
        /* After attention and after the FFN of each layer, after the embedding; logits gathered. */
        parts.reduce_s =
            one * (double)(2 * use->layers + 1) + use->reduce_latency_s +
            (double)logits * (double)use->vocab * 2 * (n - 1) / n / use->reduce_bytes_per_s;
    }
    return parts;
}

rg_seconds rg_kernel_times_step(void *kernel_times, const rg_pass *pass)
{
    const rg_kernel_times_parts p = rg_kernel_times_of(kernel_times, pass);
    return RG_S(p.dense_s + p.attention_s + p.head_s + p.moe_s + p.reduce_s);
}
