/* serve/radix.c: a radix tree of cached text. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/radix.h"

#include <assert.h>
#include <string.h>

enum { FIRST_BUCKETS = 1 << 10, CLASSES = 28, CHUNK = 256 };

/* Tokens [start, end) of a text are those of one identity, counted from start. */
typedef struct run {
    uint64_t id;
    int32_t start, end;
} run;

struct rg_radix_text {
    run *runs;
    int32_t count, size_class;
    int32_t users;
    rg_radix_text *next;
};

/* The tokens [from, to) of a text, below those of the parent. */
struct rg_radix_node {
    rg_radix_node *parent, *next; /* next in the bucket, or among the spare */
    rg_radix_text *text;
    int32_t from, to;
    int32_t locks, children;
    int32_t heap_at; /* place among the leaves that can be evicted, -1: is none */
    int64_t number;
    int64_t touched;
};

struct rg_radix {
    rg_arena *arena;
    int32_t page;
    rg_radix_node root;
    rg_radix_node **buckets; /* children by parent and first token */
    int64_t bucket_count, node_count;
    rg_radix_node **heap; /* leaves that can be evicted, least recently touched first */
    int32_t heap_count, heap_room;
    rg_radix_node *spare;
    rg_radix_text *spare_text[CLASSES];
    int64_t clock, numbers;
    int32_t pages, evictable;
    void (*evicted)(void *, const rg_segment *, int, uint64_t, int32_t, int32_t);
    void *context;
    rg_segment *told; /* the text of an eviction that is told */
    int32_t told_room;
    rg_err failed;
};

rg_radix *rg_radix_new(rg_arena *arena, int32_t page_tokens, rg_err *err)
{
    rg_radix *t = RG_NEW(arena, rg_radix, 1, err);
    if (!t)
        return NULL;
    t->arena = arena;
    t->page = page_tokens;
    t->root.locks = 1;
    t->root.heap_at = -1;
    t->bucket_count = FIRST_BUCKETS;
    t->buckets = RG_NEW(arena, rg_radix_node *, t->bucket_count, err);
    return t->buckets ? t : NULL;
}

/* ---- texts */

rg_radix_text *rg_radix_text_new(rg_radix *t, const rg_segment *segments, int count,
                                 uint64_t tail_id)
{
    int c = 1;
    while ((1 << c) < count + 1)
        c++;
    rg_radix_text *text = t->spare_text[c];
    if (text) {
        t->spare_text[c] = text->next;
    } else {
        text = RG_NEW(t->arena, rg_radix_text, 1, &t->failed);
        if (!text)
            return NULL;
        text->size_class = c;
        text->runs = RG_NEW(t->arena, run, 1 << c, &t->failed);
        if (!text->runs)
            return NULL;
    }
    text->users = 1;
    text->count = 0;
    int32_t at = 0;
    for (int i = 0; i <= count; i++) {
        const uint64_t id = i < count ? segments[i].id : tail_id;
        const int32_t end = i < count ? at + (int32_t)segments[i].tokens : INT32_MAX;
        if (text->count > 0 && text->runs[text->count - 1].id == id)
            text->runs[text->count - 1].end = end;
        else if (end > at)
            text->runs[text->count++] = (run){id, at, end};
        at = end;
    }
    return text;
}

void rg_radix_text_drop(rg_radix *t, rg_radix_text *text)
{
    if (!text || --text->users > 0)
        return;
    text->next = t->spare_text[text->size_class];
    t->spare_text[text->size_class] = text;
}

/* The run that holds token `at`. */
static int run_at(const rg_radix_text *text, int32_t at)
{
    int low = 0, high = text->count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (text->runs[middle].start <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* First token in [at, limit) in which two texts differ, else limit. */
static int32_t agree(const rg_radix_text *a, const rg_radix_text *b, int32_t at, int32_t limit)
{
    if (a == b)
        return limit;
    for (int i = run_at(a, at), j = run_at(b, at); at < limit;) {
        const run *x = &a->runs[i], *y = &b->runs[j];
        if (x->id != y->id || x->start != y->start)
            return at;
        at = x->end < y->end ? x->end : y->end;
        i += at == x->end;
        j += at == y->end;
    }
    return limit;
}

int32_t rg_radix_common(const rg_radix_text *a, const rg_radix_text *b, int32_t tokens)
{
    return agree(a, b, 0, tokens);
}

/* ---- children, found by their parent and first token */

static uint64_t bucket_of(const rg_radix *t, const rg_radix_node *parent, const rg_radix_text *text,
                          int32_t at)
{
    const run *r = &text->runs[run_at(text, at)];
    uint64_t x = r->id ^ ((uint64_t)parent->number * 0x9e3779b97f4a7c15u) ^
                 ((uint64_t)(uint32_t)r->start << 32);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) & (uint64_t)(t->bucket_count - 1);
}

static void hang(rg_radix *t, rg_radix_node *n)
{
    rg_radix_node **bucket = &t->buckets[bucket_of(t, n->parent, n->text, n->from)];
    n->next = *bucket;
    *bucket = n;
}

static void unhang(rg_radix *t, rg_radix_node *n)
{
    rg_radix_node **at = &t->buckets[bucket_of(t, n->parent, n->text, n->from)];
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
}

static void more_buckets(rg_radix *t)
{
    rg_radix_node **old = t->buckets;
    const int64_t count = t->bucket_count;
    rg_radix_node **buckets = RG_NEW(t->arena, rg_radix_node *, count * 2, &t->failed);
    if (!buckets)
        return;
    t->buckets = buckets;
    t->bucket_count = count * 2;
    for (int64_t i = 0; i < count; i++) {
        for (rg_radix_node *n = old[i], *next; n; n = next) {
            next = n->next;
            hang(t, n);
        }
    }
}

/* The child with which a text goes on for a page at least. */
static rg_radix_node *child_of(const rg_radix *t, const rg_radix_node *parent,
                               const rg_radix_text *text, int32_t at)
{
    for (rg_radix_node *n = t->buckets[bucket_of(t, parent, text, at)]; n; n = n->next)
        if (n->parent == parent && agree(n->text, text, at, at + t->page) == at + t->page)
            return n;
    return NULL;
}

static rg_radix_node *new_node(rg_radix *t)
{
    if (!t->spare) {
        rg_radix_node *many = RG_NEW(t->arena, rg_radix_node, CHUNK, &t->failed);
        if (!many)
            return NULL;
        for (int i = CHUNK - 1; i >= 0; i--) {
            many[i].next = t->spare;
            t->spare = &many[i];
        }
    }
    if (++t->node_count > t->bucket_count)
        more_buckets(t);
    rg_radix_node *n = t->spare;
    t->spare = n->next;
    *n = (rg_radix_node){.number = ++t->numbers, .heap_at = -1, .touched = ++t->clock};
    return n;
}

/* ---- leaves that can be evicted: a heap by last touch, in which nodes know their place */

static void put(rg_radix *t, int32_t i, rg_radix_node *n)
{
    t->heap[i] = n;
    n->heap_at = i;
}

static void sift(rg_radix *t, rg_radix_node *n)
{
    int32_t i = n->heap_at;
    for (; i > 0 && n->touched < t->heap[(i - 1) / 2]->touched; i = (i - 1) / 2)
        put(t, i, t->heap[(i - 1) / 2]);
    for (;;) {
        int32_t child = 2 * i + 1;
        if (child >= t->heap_count)
            break;
        if (child + 1 < t->heap_count && t->heap[child + 1]->touched < t->heap[child]->touched)
            child++;
        if (n->touched <= t->heap[child]->touched)
            break;
        put(t, i, t->heap[child]);
        i = child;
    }
    put(t, i, n);
}

static void leave_heap(rg_radix *t, rg_radix_node *n)
{
    rg_radix_node *last = t->heap[--t->heap_count];
    const int32_t hole = n->heap_at;
    n->heap_at = -1;
    if (last == n)
        return;
    put(t, hole, last);
    sift(t, last);
}

/* After a change of locks or children. */
static void weigh(rg_radix *t, rg_radix_node *n)
{
    const bool is = n->heap_at >= 0, should = n->locks == 0 && n->children == 0;
    if (is == should)
        return;
    if (is) {
        leave_heap(t, n);
        return;
    }
    if (t->heap_count == t->heap_room) {
        const int32_t room = t->heap_room ? t->heap_room * 2 : 256;
        rg_radix_node **heap = RG_NEW(t->arena, rg_radix_node *, room, &t->failed);
        if (!heap)
            return;
        if (t->heap_count)
            memcpy(heap, t->heap, (size_t)t->heap_count * sizeof *heap);
        t->heap = heap;
        t->heap_room = room;
    }
    n->heap_at = t->heap_count++;
    sift(t, n);
}

static void touch(rg_radix *t, rg_radix_node *n, int64_t now)
{
    n->touched = now;
    if (n->heap_at >= 0)
        sift(t, n);
}

/* ---- the tree */

static int32_t pages_of(const rg_radix *t, const rg_radix_node *n)
{
    return (n->to - n->from) / t->page;
}

static int32_t whole(const rg_radix *t, int64_t tokens)
{
    return (int32_t)(tokens / t->page * t->page);
}

/* A new node above n takes what lies before token `at`. */
static rg_radix_node *split(rg_radix *t, rg_radix_node *n, int32_t at)
{
    rg_radix_node *upper = new_node(t);
    if (!upper)
        return NULL;
    unhang(t, n);
    upper->parent = n->parent;
    upper->text = n->text;
    upper->text->users++;
    upper->from = n->from;
    upper->to = at;
    upper->locks = n->locks;
    upper->children = 1;
    n->parent = upper;
    n->from = at;
    hang(t, upper);
    hang(t, n);
    return upper;
}

/* Down the tree along a text up to `tokens`; gives the node, *at the tokens matched. */
static rg_radix_node *walk(rg_radix *t, const rg_radix_text *text, int32_t tokens, int32_t *at)
{
    const int64_t now = ++t->clock;
    rg_radix_node *node = &t->root;
    *at = 0;
    while (*at < tokens) {
        rg_radix_node *child = child_of(t, node, text, *at);
        if (!child)
            break;
        touch(t, child, now);
        const int32_t limit = child->to < tokens ? child->to : tokens;
        *at = whole(t, agree(child->text, text, *at, limit));
        if (*at < child->to) {
            rg_radix_node *upper = split(t, child, *at);
            return upper ? upper : node;
        }
        node = child;
    }
    return node;
}

int32_t rg_radix_match(rg_radix *t, const rg_radix_text *text, int64_t tokens, rg_radix_node **last)
{
    int32_t at;
    *last = walk(t, text, whole(t, tokens), &at);
    return at / t->page;
}

int32_t rg_radix_peek(const rg_radix *t, const rg_radix_text *text, int64_t tokens)
{
    const int32_t most = whole(t, tokens);
    const rg_radix_node *node = &t->root;
    int32_t at = 0;
    while (at < most) {
        const rg_radix_node *child = child_of(t, node, text, at);
        if (!child)
            break;
        at = whole(t, agree(child->text, text, at, child->to < most ? child->to : most));
        if (at < child->to)
            break;
        node = child;
    }
    return at / t->page;
}

int32_t rg_radix_insert(rg_radix *t, rg_radix_text *text, int64_t tokens, rg_radix_node **last)
{
    const int32_t end = whole(t, tokens);
    int32_t at;
    rg_radix_node *node = walk(t, text, end, &at);
    *last = node;
    if (at == end)
        return at / t->page;
    rg_radix_node *leaf = new_node(t);
    if (!leaf)
        return at / t->page;
    leaf->parent = node;
    leaf->text = text;
    text->users++;
    leaf->from = at;
    leaf->to = end;
    node->children++;
    hang(t, leaf);
    t->pages += pages_of(t, leaf);
    t->evictable += pages_of(t, leaf);
    weigh(t, node);
    weigh(t, leaf);
    *last = leaf;
    return at / t->page;
}

int32_t rg_radix_lock(rg_radix *t, rg_radix_node *node)
{
    int32_t fresh = 0;
    for (; node != &t->root; node = node->parent) {
        fresh += node->locks == 0 ? pages_of(t, node) : 0;
        node->locks++;
        weigh(t, node);
    }
    t->evictable -= fresh;
    return fresh;
}

int32_t rg_radix_unlock(rg_radix *t, rg_radix_node *node)
{
    int32_t loose = 0;
    for (; node != &t->root; node = node->parent) {
        assert(node->locks > 0);
        node->locks--;
        loose += node->locks == 0 ? pages_of(t, node) : 0;
        weigh(t, node);
    }
    t->evictable += loose;
    return loose;
}

int32_t rg_radix_unlocked(const rg_radix *t, const rg_radix_node *node)
{
    int32_t pages = 0;
    for (; node != &t->root && node->locks == 0; node = node->parent)
        pages += pages_of(t, node);
    return pages;
}

static void tell(rg_radix *t, const rg_radix_node *n)
{
    const rg_radix_text *text = n->text;
    if (text->count > t->told_room) {
        t->told = RG_NEW(t->arena, rg_segment, 1 << text->size_class, &t->failed);
        t->told_room = t->told ? 1 << text->size_class : 0;
    }
    if (!t->told)
        return;
    for (int i = 0; i < text->count; i++)
        t->told[i] = (rg_segment){text->runs[i].id, text->runs[i].end - text->runs[i].start};
    t->evicted(t->context, t->told, text->count - 1, text->runs[text->count - 1].id,
               n->from / t->page, n->to / t->page);
}

int32_t rg_radix_evict(rg_radix *t, int32_t pages)
{
    int32_t freed = 0;
    while (freed < pages && t->heap_count > 0) {
        rg_radix_node *leaf = t->heap[0], *parent = leaf->parent;
        if (t->evicted)
            tell(t, leaf);
        leave_heap(t, leaf);
        unhang(t, leaf);
        freed += pages_of(t, leaf);
        rg_radix_text_drop(t, leaf->text);
        leaf->next = t->spare;
        t->spare = leaf;
        t->node_count--;
        parent->children--;
        weigh(t, parent);
    }
    t->pages -= freed;
    t->evictable -= freed;
    return freed;
}

void rg_radix_on_evict(rg_radix *tree,
                       void (*evicted)(void *context, const rg_segment *segments, int count,
                                       uint64_t tail_id, int32_t from, int32_t to),
                       void *context)
{
    tree->evicted = evicted;
    tree->context = context;
}

rg_radix_node *rg_radix_root(rg_radix *tree)
{
    return &tree->root;
}

int32_t rg_radix_pages(const rg_radix *tree)
{
    return tree->pages;
}

int32_t rg_radix_evictable(const rg_radix *tree)
{
    return tree->evictable;
}

rg_status rg_radix_failed(const rg_radix *tree)
{
    return tree->failed.status;
}
