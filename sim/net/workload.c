/* net/workload.c: list scheduling of a workload's graph on host, device and network. */
// SPDX-License-Identifier: Apache-2.0
#include "net/workload.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HOST, DEVICE, NETWORK, UNITS };

typedef struct id_index {
    uint64_t id;
    int index;
} id_index;

/* Work that one unit has done, first begun first. */
typedef struct spans {
    double *begin, *end;
    int count;
} spans;

typedef struct run {
    rg_arena *arena;
    const rg_coll_context *links;
    const rg_workload *work;
    const rg_workload_setup *setup;
    rg_workload_result *out;
    double *time_s; /* of every node */
    int *open;      /* dependencies that have not ended */
    int *first;     /* followers of node i: next[first[i] ..  first[i + 1]] */
    int *next;
    double *ready_s;
    int *heap; /* nodes by ready time, ties by place in the file */
    int heap_count;
    int class_room;
} run;

/* ---- times ---- */

/* Ranks of a group and the distance of their device numbers: tensor ranks are neighbours, experts
 * lie across them, replicas across both (Megatron's order tp-ep-dp, SimAI's too). */
static rg_status group_of(const run *r, rg_work_group group, int64_t *ranks, int64_t *stride,
                          rg_err *err)
{
    const rg_workload *w = r->work;
    const int64_t all = w->ranks > 0 ? w->ranks : r->setup->ranks;
    const int64_t tp = w->tensor > 0 ? w->tensor : 1, ep = w->expert > 0 ? w->expert : 1;
    const int64_t pp = w->pipeline > 0 ? w->pipeline : 1;
    *stride = group == RG_GROUP_DATA || group == RG_GROUP_EXPERT ? tp
              : group == RG_GROUP_DATA_EXPERT                    ? tp * ep
                                                                 : 1;
    const int64_t parts = group == RG_GROUP_DATA          ? tp * pp
                          : group == RG_GROUP_DATA_EXPERT ? tp * ep * pp
                                                          : 1;
    *ranks = group == RG_GROUP_TENSOR ? tp : group == RG_GROUP_EXPERT ? ep : all / parts;
    if (all % parts != 0 || *ranks < 1)
        return rg_fail(err, RG_ERR_INPUT, w->count > 0 ? w->nodes[0].pos : RG_NOWHERE,
                       "%lld ranks in all do not divide into tp %lld x ep %lld x pp %lld",
                       (long long)all, (long long)tp, (long long)ep, (long long)pp);
    return RG_OK;
}

static rg_status class_of(run *r, const rg_work_node *node, rg_workload_class **out, rg_err *err)
{
    rg_workload_result *o = r->out;
    rg_coll_query q = r->setup->base;
    RG_TRY(group_of(r, node->group, &q.ranks, &q.stride, err));
    const bool pair = strcmp(node->op, "send") == 0 || strcmp(node->op, "receive") == 0;
    if (pair)
        q.op = RG_COLL_SEND_RECV;
    else
        RG_TRY(rg_coll_op_parse(node->op, &q.op, err));
    q.bytes = RG_B(node->bytes * (node->bytes_a_rank ? (double)q.ranks : 1));
    for (int i = o->class_count - 1; i >= 0; i--) {
        const rg_workload_class *c = &o->classes[i];
        if (c->query.op == q.op && c->group == node->group && c->query.bytes.v == q.bytes.v) {
            *out = &o->classes[i];
            return RG_OK;
        }
    }
    if (o->class_count == r->class_room) {
        const int room = r->class_room == 0 ? 64 : 2 * r->class_room;
        rg_workload_class *larger = RG_NEW(r->arena, rg_workload_class, room, err);
        if (larger == NULL)
            return RG_ERR_LIMIT;
        if (o->class_count > 0)
            memcpy(larger, o->classes, (size_t)o->class_count * sizeof *larger);
        o->classes = larger;
        r->class_room = room;
    }
    rg_workload_class *c = &o->classes[o->class_count];
    *c = (rg_workload_class){.query = q, .group = node->group};
    RG_TRY(rg_coll_time(r->links, &q, &c->one, err));
    o->class_count++;
    *out = c;
    return RG_OK;
}

static rg_status set_times(run *r, rg_err *err)
{
    for (int i = 0; i < r->work->count; i++) {
        const rg_work_node *node = &r->work->nodes[i];
        double t = isfinite(node->time_s) ? node->time_s : 0;
        if (node->kind == RG_WORK_COMM) {
            rg_workload_class *c;
            RG_TRY(class_of(r, node, &c, err));
            c->count++;
            t = c->one.time.v;
            r->out->comm.v += t;
            r->out->comm_nodes++;
        } else if (node->kind == RG_WORK_HOST) {
            r->out->host.v += t;
        } else if (node->kind == RG_WORK_COMPUTE) {
            if (!isfinite(node->time_s)) {
                t = fmax(node->flops / r->setup->flops.v, node->memory_bytes / r->setup->memory.v);
                r->out->estimated_nodes++;
            }
            r->out->compute.v += t;
            r->out->compute_nodes++;
        }
        r->time_s[i] = t;
    }
    return RG_OK;
}

/* ---- the graph ---- */

static int by_id(const void *a, const void *b)
{
    const id_index *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static rg_status link_followers(run *r, rg_err *err)
{
    const rg_workload *w = r->work;
    size_t edges = 0;
    id_index *ids = RG_NEW(r->arena, id_index, w->count, err);
    if (ids == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < w->count; i++) {
        ids[i] = (id_index){w->nodes[i].id, i};
        edges += (size_t)w->nodes[i].after_count;
    }
    qsort(ids, (size_t)w->count, sizeof *ids, by_id);
    int *from = RG_NEW(r->arena, int, edges, err);
    r->next = RG_NEW(r->arena, int, edges, err);
    if (from == NULL || r->next == NULL)
        return RG_ERR_LIMIT;
    size_t e = 0;
    for (int i = 0; i < w->count; i++)
        for (int d = 0; d < w->nodes[i].after_count; d++) {
            const id_index key = {w->nodes[i].after[d], 0};
            const id_index *found = bsearch(&key, ids, (size_t)w->count, sizeof *ids, by_id);
            from[e++] = found->index; /* the reader has checked that it is there */
            r->first[found->index + 1]++;
        }
    for (int i = 0; i < w->count; i++)
        r->first[i + 1] += r->first[i];
    int *at = RG_NEW(r->arena, int, w->count, err);
    if (at == NULL)
        return RG_ERR_LIMIT;
    memcpy(at, r->first, (size_t)w->count * sizeof *at);
    e = 0;
    for (int i = 0; i < w->count; i++)
        for (int d = 0; d < w->nodes[i].after_count; d++) {
            r->next[at[from[e++]]++] = i;
            r->open[i]++;
        }
    return RG_OK;
}

static bool sooner(const run *r, int a, int b)
{
    return r->ready_s[a] < r->ready_s[b] || (r->ready_s[a] == r->ready_s[b] && a < b);
}

static void push(run *r, int node)
{
    int i = r->heap_count++;
    for (; i > 0 && sooner(r, node, r->heap[(i - 1) / 2]); i = (i - 1) / 2)
        r->heap[i] = r->heap[(i - 1) / 2];
    r->heap[i] = node;
}

static int pop(run *r)
{
    const int top = r->heap[0], last = r->heap[--r->heap_count];
    int i = 0;
    for (int child; (child = 2 * i + 1) < r->heap_count; i = child) {
        if (child + 1 < r->heap_count && sooner(r, r->heap[child + 1], r->heap[child]))
            child++;
        if (!sooner(r, r->heap[child], last))
            break;
        r->heap[i] = r->heap[child];
    }
    r->heap[i] = last;
    return top;
}

/* Time that spans of a and of b share. */
static double shared(const spans *a, const spans *b)
{
    double sum = 0;
    for (int i = 0, k = 0; i < a->count && k < b->count;) {
        const double begin = fmax(a->begin[i], b->begin[k]), end = fmin(a->end[i], b->end[k]);
        sum += end > begin ? end - begin : 0;
        if (a->end[i] < b->end[k])
            i++;
        else
            k++;
    }
    return sum;
}

static rg_status schedule(run *r, rg_err *err)
{
    const rg_workload *w = r->work;
    spans done[UNITS] = {0};
    double free_s[UNITS] = {0};
    int ended = 0;
    for (int u = 0; u < UNITS; u++) {
        done[u].begin = RG_NEW(r->arena, double, w->count, err);
        done[u].end = RG_NEW(r->arena, double, w->count, err);
        if (done[u].begin == NULL || done[u].end == NULL)
            return RG_ERR_LIMIT;
    }
    for (int i = 0; i < w->count; i++)
        if (r->open[i] == 0)
            push(r, i);
    for (; r->heap_count > 0; ended++) {
        const int i = pop(r);
        double end = r->ready_s[i];
        if (w->nodes[i].kind != RG_WORK_NOTHING) {
            const int u = w->nodes[i].kind == RG_WORK_HOST      ? HOST
                          : w->nodes[i].kind == RG_WORK_COMPUTE ? DEVICE
                                                                : NETWORK;
            spans *s = &done[u];
            s->begin[s->count] = fmax(r->ready_s[i], free_s[u]);
            end = free_s[u] = s->end[s->count] = s->begin[s->count] + r->time_s[i];
            s->count++;
        }
        r->out->end.v = fmax(r->out->end.v, end);
        for (int e = r->first[i]; e < r->first[i + 1]; e++) {
            const int follower = r->next[e];
            r->ready_s[follower] = fmax(r->ready_s[follower], end);
            if (--r->open[follower] == 0)
                push(r, follower);
        }
    }
    for (int i = 0; ended < w->count && i < w->count; i++)
        if (r->open[i] > 0)
            return rg_fail(err, RG_ERR_INPUT, w->nodes[i].pos,
                           "node %" PRIu64 " '%s' and %d others wait for each other in a circle",
                           w->nodes[i].id, w->nodes[i].name, w->count - ended - 1);
    r->out->exposed = RG_S(r->out->comm.v - shared(&done[NETWORK], &done[DEVICE]));
    return RG_OK;
}

static int by_total(const void *a, const void *b)
{
    const rg_workload_class *x = a, *y = b;
    const double tx = x->one.time.v * (double)x->count, ty = y->one.time.v * (double)y->count;
    if (tx != ty)
        return tx > ty ? -1 : 1;
    if (x->query.op != y->query.op)
        return x->query.op < y->query.op ? -1 : 1;
    return (x->query.bytes.v > y->query.bytes.v) - (x->query.bytes.v < y->query.bytes.v);
}

rg_status rg_workload_run(rg_arena *arena, const rg_coll_context *links, const rg_workload *work,
                          const rg_workload_setup *setup, rg_workload_result *out, rg_err *err)
{
    run r = {.arena = arena, .links = links, .work = work, .setup = setup, .out = out};
    *out = (rg_workload_result){0};
    r.time_s = RG_NEW(arena, double, work->count, err);
    r.ready_s = RG_NEW(arena, double, work->count, err);
    r.open = RG_NEW(arena, int, work->count, err);
    r.heap = RG_NEW(arena, int, work->count, err);
    r.first = RG_NEW(arena, int, work->count + 1, err);
    if (r.time_s == NULL || r.ready_s == NULL || r.open == NULL || r.heap == NULL ||
        r.first == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(set_times(&r, err));
    RG_TRY(link_followers(&r, err));
    RG_TRY(schedule(&r, err));
    if (out->class_count > 0)
        qsort(out->classes, (size_t)out->class_count, sizeof *out->classes, by_total);
    return RG_OK;
}
