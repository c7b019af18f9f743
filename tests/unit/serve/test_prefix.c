/* Prefix caches against literal models of what the engines do, on explicit tokens: SGLang's radix
 * tree operation by operation, and the tokens that each request finds in a cache that is too small,
 * under vLLM's blocks and SGLang's tree. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>

#include "core/rng.h"
#include "serve/replica.h"

static rg_arena *arena;
static rg_err err;

static int setup(void **state)
{
    (void)state;
    arena = rg_arena_new(1024);
    err = (rg_err){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rg_arena_free(arena);
    return 0;
}

enum { MOST_TOKENS = 640, SEGMENTS = 8 };

/* ---- texts of explicit tokens */

typedef struct text {
    rg_segment segments[SEGMENTS];
    int count, length; /* of the prompt */
    uint64_t tail;
    uint64_t tokens[MOST_TOKENS]; /* the prompt, then what follows it */
} text;

static int below(rg_rng *rng, int n)
{
    return (int)(rg_rng_real(rng) * n);
}

/* Few identities and lengths, so that texts often agree, part within a segment, or go on under one
 * identity. */
static text make_text(rg_rng *rng, int id)
{
    text t = {.count = 1 + below(rng, SEGMENTS - 1), .tail = 1000 + (uint64_t)id};
    if (below(rng, 3) == 0)
        t.tail = (uint64_t)(1 + below(rng, 4));
    for (int i = 0; i < t.count; i++) {
        t.segments[i].id = (uint64_t)(1 + below(rng, 4));
        t.segments[i].tokens = 1 + below(rng, 4) * 11;
        t.length += (int)t.segments[i].tokens;
    }
    uint64_t before = 0;
    int at = 0, place = 0;
    for (int i = 0; i <= t.count; i++) {
        const uint64_t one = i < t.count ? t.segments[i].id : t.tail;
        const int end = i < t.count ? at + (int)t.segments[i].tokens : MOST_TOKENS;
        for (place = one == before ? place : 0; at < end; at++)
            t.tokens[at] = one * 100000 + (uint64_t)place++;
        before = one;
    }
    return t;
}

/* ---- SGLang's tree, literally: every list walked, every token compared */

typedef struct node {
    struct node *parent, *child, *sibling;
    uint64_t key[MOST_TOKENS];
    int length, locks;
    int64_t touched;
} node;

typedef struct tree {
    node root;
    int page;
    int64_t clock;
} tree;

static int same_tokens(const uint64_t *a, const uint64_t *b, int most, int page)
{
    int n = 0;
    while (n < most && a[n] == b[n])
        n++;
    return n / page * page;
}

static node *add_node(tree *t, node *parent, const uint64_t *key, int length)
{
    node *n = calloc(1, sizeof *n);
    assert_non_null(n);
    memcpy(n->key, key, (size_t)length * sizeof *key);
    n->length = length;
    n->parent = parent;
    n->sibling = parent->child;
    parent->child = n;
    n->touched = ++t->clock;
    return n;
}

static void take_out(node *n)
{
    node **at = &n->parent->child;
    while (*at != n)
        at = &(*at)->sibling;
    *at = n->sibling;
}

static node *split_node(tree *t, node *n, int length)
{
    take_out(n);
    node *upper = add_node(t, n->parent, n->key, length);
    upper->locks = n->locks;
    memmove(n->key, n->key + length, (size_t)(n->length - length) * sizeof n->key[0]);
    n->length -= length;
    n->parent = upper;
    n->sibling = NULL;
    upper->child = n;
    return upper;
}

static node *go_down(tree *t, const uint64_t *tokens, int count, int *matched)
{
    const int64_t now = ++t->clock;
    node *at = &t->root;
    *matched = 0;
    while (*matched < count) {
        node *n = at->child;
        int same = 0;
        for (; n; n = n->sibling) {
            const int rest = count - *matched;
            same = same_tokens(n->key, tokens + *matched, n->length < rest ? n->length : rest,
                               t->page);
            if (same > 0)
                break;
        }
        if (!n)
            break;
        n->touched = now;
        *matched += same;
        if (same < n->length)
            return split_node(t, n, same);
        at = n;
    }
    return at;
}

static int put_in(tree *t, const uint64_t *tokens, int count, node **last)
{
    int matched;
    *last = go_down(t, tokens, count, &matched);
    if (matched < count)
        *last = add_node(t, *last, tokens + matched, count - matched);
    return matched;
}

static void lock_up(node *n, int by)
{
    for (; n->parent; n = n->parent)
        n->locks += by;
}

static void leaves(node *n, node **oldest, int *size, int *evictable)
{
    *size += n->length;
    *evictable += n->parent && n->locks == 0 ? n->length : 0;
    if (n->parent && !n->child && n->locks == 0 && (!*oldest || n->touched < (*oldest)->touched))
        *oldest = n;
    for (node *c = n->child; c; c = c->sibling)
        leaves(c, oldest, size, evictable);
}

static int evict_tokens(tree *t, int tokens)
{
    int freed = 0;
    while (freed < tokens) {
        node *oldest = NULL;
        int size = 0, evictable = 0;
        leaves(&t->root, &oldest, &size, &evictable);
        if (!oldest)
            break;
        freed += oldest->length;
        take_out(oldest);
        free(oldest);
    }
    return freed;
}

static void fell(node *n)
{
    while (n->child) {
        node *c = n->child;
        n->child = c->sibling;
        fell(c);
        free(c);
    }
}

enum { HELD = 12 };

static void compare_operations(int page, uint64_t seed)
{
    rg_rng rng;
    rg_rng_seed(&rng, seed, 1);
    rg_radix *got = rg_radix_new(arena, page, &err);
    assert_non_null(got);
    tree want = {.page = page};
    node *want_held[HELD] = {0};
    rg_radix_node *got_held[HELD] = {0};
    int hits = 0, evictions = 0;
    for (int i = 0; i < 4000; i++) {
        const text t = make_text(&rng, i);
        const int whole = t.length / page * page, action = below(&rng, 10);
        rg_radix_text *words = rg_radix_text_new(got, t.segments, t.count, t.tail);
        node *a;
        rg_radix_node *b;
        if (action < 4) {
            int matched;
            a = go_down(&want, t.tokens, whole, &matched);
            assert_int_equal(rg_radix_peek(got, words, t.length), matched / page);
            assert_int_equal(rg_radix_match(got, words, t.length, &b), matched / page);
            hits += matched;
        } else if (action < 8) {
            assert_int_equal(put_in(&want, t.tokens, whole, &a) / page,
                             rg_radix_insert(got, words, t.length, &b));
        } else {
            const int pages = 1 + below(&rng, 200 / page + 1);
            const int freed = evict_tokens(&want, pages * page);
            assert_int_equal(rg_radix_evict(got, pages), freed / page);
            evictions += freed;
            rg_radix_text_drop(got, words);
            continue;
        }
        const int slot = below(&rng, HELD * 3);
        if (slot < HELD) {
            if (want_held[slot]) {
                lock_up(want_held[slot], -1);
                rg_radix_unlock(got, got_held[slot]);
            }
            want_held[slot] = a;
            got_held[slot] = b;
            lock_up(a, 1);
            rg_radix_lock(got, b);
        }
        node *oldest = NULL;
        int size = 0, evictable = 0;
        leaves(&want.root, &oldest, &size, &evictable);
        assert_int_equal(rg_radix_pages(got), size / page);
        assert_int_equal(rg_radix_evictable(got), evictable / page);
        rg_radix_text_drop(got, words);
    }
    assert_true(hits > 10000 && evictions > 10000);
    fell(&want.root);
}

static void tree_does_what_sglang_does(void **state)
{
    (void)state;
    compare_operations(1, 3);
    compare_operations(4, 4);
    compare_operations(16, 5);
}

/* ---- one request at a time, so that what each finds is known exactly */

enum { REQUESTS = 1200 };

static text texts[REQUESTS];
static rg_request requests[REQUESTS];
static int found[REQUESTS];

static void make_requests(uint64_t seed)
{
    rg_rng rng;
    rg_rng_seed(&rng, seed, 2);
    for (int i = 0; i < REQUESTS; i++) {
        texts[i] = make_text(&rng, i);
        requests[i] = (rg_request){.index = i,
                                   .arrival_s = 1000.0 * i,
                                   .prompt_tokens = texts[i].length,
                                   .output_tokens = 1 + below(&rng, 60),
                                   .session = -1,
                                   .segments = texts[i].segments,
                                   .segment_count = texts[i].count,
                                   .output_id = texts[i].tail};
    }
}

static void note(void *context, const rg_served *s)
{
    (void)context;
    found[s->index] = (int)s->cached_tokens;
}

static rg_seconds ten_ms(void *context, const rg_pass *pass)
{
    (void)context;
    (void)pass;
    return RG_S(0.01);
}

/* How many tokens are found in all. */
static int64_t serve(rg_policy_kind policy, int blocks, int page, rg_serve_result *result)
{
    rg_deployment d = {.rules = rg_engine_rules_default(policy),
                       .constants = {.kernel_scale = 1},
                       .step = {.step_time = ten_ms, .context = NULL},
                       .replicas = 1,
                       .devices_per_replica = 1};
    d.rules.blocks = blocks;
    d.rules.block_tokens = page;
    d.rules.asynchronous = false;
    const rg_observer observer = {.served = note};
    rg_requests *stream;
    assert_ok(rg_requests_array(arena, requests, REQUESTS, &stream, &err));
    assert_ok(rg_serve_run(arena, &d, stream, NULL, &observer, 1, result, &err));
    assert_int_equal(result->finished, REQUESTS);
    int64_t sum = 0;
    for (int i = 0; i < REQUESTS; i++)
        sum += found[i];
    assert_int_equal(sum, result->hit_tokens);
    return sum;
}

/* Pages are taken for the prompt at once and for the output as it comes; the prompt enters the tree
 * when computed, all but the last token when the request is done. */
static void check_sglang(int blocks, int page)
{
    rg_serve_result result;
    assert_true(serve(RG_POLICY_SGLANG, blocks, page, &result) > 5000);
    tree t = {.page = page};
    int vacant = blocks ? blocks - 1 : 1 << 30;
    for (int i = 0; i < REQUESTS; i++) {
        const int n = texts[i].length, o = (int)requests[i].output_tokens;
        int matched;
        node *held = go_down(&t, texts[i].tokens, (n - 1) / page * page, &matched), *then;
        assert_int_equal(found[i], matched);
        lock_up(held, 1);
        int own = (n + page - 1) / page - matched / page;
        if (own > vacant)
            vacant += evict_tokens(&t, (own - vacant) * page) / page;
        vacant -= own;
        const int there = put_in(&t, texts[i].tokens, n / page * page, &then) / page;
        vacant += there - matched / page;
        own = (n + page - 1) / page - n / page;
        lock_up(then, 1);
        lock_up(held, -1);
        for (int tokens = n + 1; tokens < n + o; tokens++) {
            if ((tokens + page - 1) / page == n / page + own)
                continue;
            if (vacant == 0)
                vacant += evict_tokens(&t, page) / page;
            vacant--;
            own++;
        }
        node *end;
        const int all = (n + o - 1) / page;
        const int known = put_in(&t, texts[i].tokens, all * page, &end) / page;
        vacant += known - n / page + (own - (all - n / page));
        lock_up(then, -1);
    }
    fell(&t.root);
}

static void requests_find_what_sglangs_tree_holds(void **state)
{
    (void)state;
    make_requests(11);
    check_sglang(0, 1);
    check_sglang(900, 1);
    check_sglang(120, 8);
}

/* vLLM's blocks, literally. A block that is known has the tokens up to its end. */
typedef struct block {
    uint64_t text; /* hash of all tokens up to its end, 0: unknown */
    int64_t since; /* among equal ones the first that was known serves */
    bool busy;
} block;

static uint64_t hash_of(const uint64_t *tokens, int count)
{
    uint64_t x = 14695981039346656037u;
    for (int i = 0; i < count; i++)
        x = (x ^ tokens[i]) * 1099511628211u;
    return x | 1;
}

static void check_vllm(int blocks, int size)
{
    rg_serve_result result;
    assert_true(serve(RG_POLICY_VLLM1, blocks, size, &result) > 5000);
    block *pool = calloc((size_t)blocks, sizeof *pool);
    int *queue = calloc((size_t)blocks * 100000, sizeof *queue);
    assert_true(pool && queue);
    int head = 0, tail = 0;
    int64_t clock = 0, evicted = 0;
    for (int b = 1; b < blocks; b++)
        queue[tail++] = b;
    for (int i = 0; i < REQUESTS; i++) {
        const int n = texts[i].length, o = (int)requests[i].output_tokens;
        const uint64_t *tokens = texts[i].tokens;
        int mine[MOST_TOKENS], held = 0;
        for (; held < (n - 1) / size; held++) {
            const uint64_t hash = hash_of(tokens, (held + 1) * size);
            int first = 0;
            for (int b = 1; b < blocks; b++)
                if (pool[b].text == hash && (!first || pool[b].since < pool[first].since))
                    first = b;
            if (!first)
                break;
            mine[held] = first;
        }
        assert_int_equal(found[i], held * size);
        for (int j = 0; j < held; j++) {
            pool[mine[j]].busy = true;
            int kept = head;
            for (int k = head; k < tail; k++)
                if (queue[k] != mine[j])
                    queue[kept++] = queue[k];
            tail = kept;
        }
        int known = held;
        /* The prompt, then token by token; blocks are known as they fill. */
        for (int computed = n; computed < n + o; computed++) {
            while (held < (computed + size - 1) / size) {
                mine[held] = queue[head++];
                evicted += pool[mine[held]].text != 0;
                pool[mine[held]] = (block){.busy = true};
                held++;
            }
            for (; known < computed / size; known++) {
                pool[mine[known]].text = hash_of(tokens, (known + 1) * size);
                pool[mine[known]].since = ++clock;
            }
        }
        while (held > 0) {
            pool[mine[--held]].busy = false;
            queue[tail++] = mine[held];
        }
    }
    assert_int_equal(result.evicted_blocks, evicted);
    assert_true(evicted > 1000);
    free(pool);
    free(queue);
}

static void requests_find_what_vllms_blocks_hold(void **state)
{
    (void)state;
    make_requests(12);
    check_vllm(60, 16);
    check_vllm(200, 4);
}

/* Two prompts of one text side by side in one step: the second waits under longest-prefix-first
 * and then finds the first one's prompt; first come first served, both are computed. */
static void twins_wait_for_each_other_by_longest_prefix(void **state)
{
    (void)state;
    static const rg_segment words[] = {{5, 400}};
    rg_request pair[2] = {{.prompt_tokens = 400, .output_tokens = 5, .session = -1}};
    pair[0].segments = words;
    pair[0].segment_count = 1;
    pair[1] = pair[0];
    pair[1].index = 1;
    for (int lpm = 0; lpm < 2; lpm++) {
        rg_deployment d = {.rules = rg_engine_rules_default(RG_POLICY_SGLANG),
                           .constants = {.kernel_scale = 1},
                           .step = {.step_time = ten_ms, .context = NULL},
                           .replicas = 1,
                           .devices_per_replica = 1};
        d.rules.max_batched_tokens = 400;
        d.rules.longest_prefix_first = lpm;
        rg_serve_result result;
        rg_requests *stream;
        assert_ok(rg_requests_array(arena, pair, 2, &stream, &err));
        assert_ok(rg_serve_run(arena, &d, stream, NULL, NULL, 1, &result, &err));
        assert_int_equal(result.hit_tokens, 399);
        d.rules.max_batched_tokens = 800;
        assert_ok(rg_requests_array(arena, pair, 2, &stream, &err));
        assert_ok(rg_serve_run(arena, &d, stream, NULL, NULL, 1, &result, &err));
        assert_int_equal(result.hit_tokens, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tree_does_what_sglang_does, setup, teardown),
        cmocka_unit_test_setup_teardown(requests_find_what_sglangs_tree_holds, setup, teardown),
        cmocka_unit_test_setup_teardown(requests_find_what_vllms_blocks_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(twins_wait_for_each_other_by_longest_prefix, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
