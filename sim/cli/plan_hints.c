/* cli/plan_hints.c: how engines are started in the arrangement of a plan. */
// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/plan.h"

/* Text that grows within a fixed room. */
typedef struct line {
    char text[1024];
    size_t used;
} line;

__attribute__((format(printf, 2, 3))) static void put(line *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (l->used < sizeof l->text) {
        const int n = vsnprintf(l->text + l->used, sizeof l->text - l->used, format, args);
        l->used += n > 0 ? (size_t)n : 0;
    }
    va_end(args);
}

/* The engines' word for a cache type, NULL when it is theirs by default. */
static const char *cache_type(const rg_arrangement *a)
{
    return strncmp(a->formats.kv.name, "fp8", 3) == 0    ? "fp8"
           : strncmp(a->formats.kv.name, "int8", 4) == 0 ? "int8"
                                                         : NULL;
}

/* A type that an engine makes of a 16-bit checkpoint while loading it; others need a checkpoint. */
static const char *quantised(const rg_arrangement *a)
{
    return a->weight_type && strncmp(a->weight_type, "fp8", 3) == 0 ? "fp8" : NULL;
}

/* The setting of an engine that gives this KV memory: each counts a share of something else. */
static double memory_share(const rg_candidate *c, rg_memory_share of)
{
    const rg_capacity *m = &c->capacity;
    const double there = m->device_bytes - m->driver_bytes, held = m->kv_bytes + m->state_bytes;
    const double beside = m->activation_bytes + m->graph_bytes + m->context_bytes;
    const double share = of == RG_SHARE_TOTAL ? (held + m->weight_bytes + beside) / there
                         : of == RG_SHARE_STATIC
                             ? (held + m->weight_bytes) / (there - m->context_bytes)
                             : held / (there - m->weight_bytes - beside);
    return share < 0.99 ? share : 0.99;
}

static void vllm(line *l, const rg_space *s, const rg_candidate *c)
{
    const rg_arrangement *a = &s->arrangements[c->arrangement];
    const rg_parallel *p = &a->parallel;
    put(l, "vllm serve %s", s->plan->model);
    if (p->attention_dp)
        put(l, " --data-parallel-size %lld", (long long)p->tp);
    else
        put(l, " --tensor-parallel-size %lld", (long long)p->tp);
    if (p->pp > 1)
        put(l, " --pipeline-parallel-size %lld", (long long)p->pp);
    if (p->ep > 1)
        put(l, " --enable-expert-parallel");
    if (p->cp > 1)
        put(l, " --decode-context-parallel-size %lld", (long long)p->cp);
    put(l, " --max-num-seqs %lld --max-num-batched-tokens %lld --gpu-memory-utilization %.2f",
        (long long)c->rules.max_sequences, (long long)c->rules.max_batched_tokens,
        memory_share(c, RG_SHARE_TOTAL));
    if (quantised(a))
        put(l, " --quantization %s", quantised(a));
    if (cache_type(a))
        put(l, " --kv-cache-dtype %s", cache_type(a));
    if (!c->rules.prefix_caching)
        put(l, " --no-enable-prefix-caching");
}

static void sglang(line *l, const rg_space *s, const rg_candidate *c)
{
    const rg_arrangement *a = &s->arrangements[c->arrangement];
    const rg_parallel *p = &a->parallel;
    put(l, "python -m sglang.launch_server --model-path %s --tp-size %lld", s->plan->model,
        (long long)p->tp);
    if (p->pp > 1)
        put(l, " --pp-size %lld", (long long)p->pp);
    if (p->ep > 1)
        put(l, " --ep-size %lld", (long long)p->ep);
    if (p->attention_dp)
        put(l, " --dp-size %lld --enable-dp-attention", (long long)p->tp);
    put(l, " --max-running-requests %lld --chunked-prefill-size %lld --mem-fraction-static %.2f",
        (long long)c->rules.max_sequences, (long long)c->rules.max_batched_tokens,
        memory_share(c, RG_SHARE_STATIC));
    if (quantised(a))
        put(l, " --quantization %s", quantised(a));
    if (cache_type(a))
        put(l, " --kv-cache-dtype %s",
            strcmp(cache_type(a), "fp8") == 0 ? "fp8_e4m3" : cache_type(a));
    if (!c->rules.prefix_caching)
        put(l, " --disable-radix-cache");
}

static void trtllm(line *l, const rg_space *s, const rg_candidate *c)
{
    const rg_arrangement *a = &s->arrangements[c->arrangement];
    const rg_parallel *p = &a->parallel;
    put(l, "trtllm-serve %s --tp_size %lld", s->plan->model, (long long)p->tp);
    if (p->pp > 1)
        put(l, " --pp_size %lld", (long long)p->pp);
    if (p->ep > 1)
        put(l, " --ep_size %lld", (long long)p->ep);
    put(l, " --max_batch_size %lld --max_num_tokens %lld --kv_cache_free_gpu_memory_fraction %.2f",
        (long long)c->rules.max_sequences, (long long)c->rules.max_batched_tokens,
        memory_share(c, RG_SHARE_FREE));
    if (cache_type(a) || p->attention_dp) {
        put(l, " --extra_llm_api_options with");
        if (cache_type(a))
            put(l, " kv_cache_config.dtype: %s", cache_type(a));
        if (p->attention_dp)
            put(l, " enable_attention_dp: true");
    }
}

void rg_plan_launch_hints(rg_arena *arena, const rg_space *s, const rg_candidate *c,
                          int64_t replicas, const char *out[3])
{
    for (int i = 0; i < 3; i++) {
        line l = {.used = 0};
        if (i == 0)
            vllm(&l, s, c);
        else if (i == 1)
            sglang(&l, s, c);
        else
            trtllm(&l, s, c);
        if (replicas > 1)
            put(&l, "   # %lld times, behind a router", (long long)replicas);
        out[i] = rg_arena_strdup(arena, l.text, NULL);
        out[i] = out[i] ? out[i] : "";
    }
}
