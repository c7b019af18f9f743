/* cli/plan_hints.c: how engines are started in the arrangement of a plan. */
// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/plan.h"

/* One kind of replica: all of them, or one of two pools. */
typedef struct kind {
    const rg_space *space;
    const rg_arrangement *arrangement;
    const rg_engine_rules *rules;
    const rg_capacity *capacity;
    rg_plan_role role;
    int64_t replicas;
    rg_spec_kind speculate; /* none also where prompts alone are computed */
} kind;

/* Name of a way to speculate in each engine; NULL: no option of it. The draft's checkpoint is the
 * user's own but for a model that the plan names. */
typedef struct spec_words {
    const char *vllm, *sglang, *trtllm, *draft;
} spec_words;

static spec_words words_of(const kind *k)
{
    switch (k->speculate) {
    case RG_SPEC_DRAFT_MODEL:
        return (spec_words){"draft_model", "STANDALONE", "DraftTarget",
                            k->space->plan->draft_model};
    case RG_SPEC_EAGLE:
        return (spec_words){"eagle3", "EAGLE3", "Eagle3", "EAGLE3_CHECKPOINT"};
    case RG_SPEC_MTP:
        return (spec_words){"mtp", "NEXTN", "MTP", NULL};
    case RG_SPEC_MEDUSA:
        return (spec_words){.vllm = "medusa", .draft = "MEDUSA_CHECKPOINT"};
    case RG_SPEC_NONE:
    case RG_SPEC_SELF:
    case RG_SPEC_COUNT:
        break;
    }
    return (spec_words){NULL, NULL, NULL, NULL};
}

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

/* What engines load: the checkpoint that the model's file was made of, else what the user named. */
static const char *checkpoint(const kind *k, char out[160])
{
    const char *source = k->space->model->source;
    if (source && sscanf(source, "config.json of %159s on Hugging Face", out) == 1 &&
        strchr(out, '/'))
        return out;
    return k->space->plan->model;
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
static double memory_share(const rg_capacity *m, rg_memory_share of)
{
    const double there = m->device_bytes - m->driver_bytes, held = m->kv_bytes + m->state_bytes;
    const double beside = m->activation_bytes + m->graph_bytes + m->context_bytes;
    const double share = of == RG_SHARE_TOTAL ? (held + m->weight_bytes + beside) / there
                         : of == RG_SHARE_STATIC
                             ? (held + m->weight_bytes) / (there - m->context_bytes)
                             : held / (there - m->weight_bytes - beside);
    return share < 0.99 ? share : 0.99;
}

/* vLLM's and TensorRT-LLM's limits are those of one data-parallel rank. */
static long long a_rank_s(const kind *k, int64_t limit)
{
    const rg_parallel *p = &k->arrangement->parallel;
    const int64_t ranks = p->attention_dp ? p->tp : 1;
    return (long long)((limit + ranks - 1) / ranks);
}

static void vllm(line *l, const kind *k)
{
    const rg_arrangement *a = k->arrangement;
    const rg_parallel *p = &a->parallel;
    char name[160];
    put(l, "vllm serve %s", checkpoint(k, name));
    if (p->attention_dp)
        put(l, " --data-parallel-size %lld", (long long)p->tp);
    else
        put(l, " --tensor-parallel-size %lld", (long long)(p->tp * p->cp));
    if (p->pp > 1)
        put(l, " --pipeline-parallel-size %lld", (long long)p->pp);
    if (p->ep > 1)
        put(l, " --enable-expert-parallel");
    if (p->cp > 1) /* within the tensor-parallel ranks */
        put(l, " --decode-context-parallel-size %lld", (long long)p->cp);
    put(l, " --max-num-seqs %lld --max-num-batched-tokens %lld --gpu-memory-utilization %.2f",
        a_rank_s(k, k->rules->max_sequences), a_rank_s(k, k->rules->max_batched_tokens),
        memory_share(k->capacity, RG_SHARE_TOTAL));
    if (quantised(a))
        put(l, " --quantization %s", quantised(a));
    if (cache_type(a))
        put(l, " --kv-cache-dtype %s", cache_type(a));
    if (!k->rules->prefix_caching)
        put(l, " --no-enable-prefix-caching");
    if (k->role != RG_ROLE_ALL)
        put(l, " --kv-transfer-config '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"%s\"}'",
            k->role == RG_ROLE_PROMPTS ? "kv_producer" : "kv_consumer");
    const spec_words x = words_of(k);
    if (x.vllm) {
        put(l, " --speculative-config '{\"method\":\"%s\",\"num_speculative_tokens\":%lld", x.vllm,
            (long long)k->rules->speculation.drafts);
        if (x.draft)
            put(l, ",\"model\":\"%s\"", x.draft);
        put(l, "}'");
    }
}

static void sglang(line *l, const kind *k)
{
    const rg_arrangement *a = k->arrangement;
    const rg_parallel *p = &a->parallel;
    char name[160];
    put(l, "python -m sglang.launch_server --model-path %s --tp-size %lld", checkpoint(k, name),
        (long long)p->tp);
    if (p->pp > 1)
        put(l, " --pp-size %lld", (long long)p->pp);
    if (p->ep > 1)
        put(l, " --ep-size %lld", (long long)p->ep);
    if (p->attention_dp)
        put(l, " --dp-size %lld --enable-dp-attention", (long long)p->tp);
    put(l, " --max-running-requests %lld --chunked-prefill-size %lld --mem-fraction-static %.2f",
        (long long)k->rules->max_sequences, (long long)k->rules->max_batched_tokens,
        memory_share(k->capacity, RG_SHARE_STATIC));
    if (quantised(a))
        put(l, " --quantization %s", quantised(a));
    if (cache_type(a))
        put(l, " --kv-cache-dtype %s",
            strcmp(cache_type(a), "fp8") == 0 ? "fp8_e4m3" : cache_type(a));
    if (!k->rules->prefix_caching)
        put(l, " --disable-radix-cache");
    if (k->role != RG_ROLE_ALL)
        put(l, " --disaggregation-mode %s", k->role == RG_ROLE_PROMPTS ? "prefill" : "decode");
    const spec_words x = words_of(k);
    const long long drafts = (long long)k->rules->speculation.drafts;
    if (x.sglang)
        put(l,
            " --speculative-algorithm %s --speculative-num-steps %lld --speculative-eagle-topk 1"
            " --speculative-num-draft-tokens %lld",
            x.sglang, drafts, drafts + 1);
    if (x.sglang && x.draft)
        put(l, " --speculative-draft-model-path %s", x.draft);
}

/* trtllm-serve takes the rest as YAML, which is written to a file first. */
static const char trtllm_yaml[] = "trtllm.yaml";

/* Writes the file; false when there is nothing to write. */
static bool trtllm_file(line *l, const kind *k)
{
    const size_t before = l->used;
    const spec_words x = words_of(k);
    put(l, "printf '%%s\\n'");
    const size_t bare = l->used;
    if (cache_type(k->arrangement))
        put(l, " 'kv_cache_config: {dtype: %s}'", cache_type(k->arrangement));
    if (k->arrangement->parallel.attention_dp)
        put(l, " 'enable_attention_dp: true'");
    if (k->role != RG_ROLE_ALL)
        put(l, " 'cache_transceiver_config: {backend: DEFAULT}'");
    if (x.trtllm) {
        put(l, " 'speculative_config: {decoding_type: %s, max_draft_len: %lld", x.trtllm,
            (long long)k->rules->speculation.drafts);
        if (x.draft)
            put(l, ", speculative_model: %s", x.draft);
        put(l, "}'");
    }
    if (l->used == bare) {
        l->used = before;
        l->text[before] = '\0';
        return false;
    }
    put(l, " >%s; ", trtllm_yaml);
    return true;
}

static bool knows(const spec_words *x, int engine)
{
    const char *const words[] = {x->vllm, x->sglang, x->trtllm};
    return words[engine] != NULL;
}

static void trtllm(line *l, const kind *k)
{
    const rg_parallel *p = &k->arrangement->parallel;
    const bool file = trtllm_file(l, k);
    char name[160];
    put(l, "trtllm-serve %s --tp_size %lld", checkpoint(k, name), (long long)p->tp);
    if (p->pp > 1)
        put(l, " --pp_size %lld", (long long)p->pp);
    if (p->ep > 1)
        put(l, " --ep_size %lld", (long long)p->ep);
    put(l, " --max_batch_size %lld --max_num_tokens %lld --kv_cache_free_gpu_memory_fraction %.2f",
        a_rank_s(k, k->rules->max_sequences), a_rank_s(k, k->rules->max_batched_tokens),
        memory_share(k->capacity, RG_SHARE_FREE));
    if (file)
        put(l, " --config %s", trtllm_yaml);
}

void rg_plan_launch_hints(rg_arena *arena, const rg_plan_run *run, rg_plan_role role,
                          const char *out[3])
{
    static void (*const engines[])(line * l, const kind *k) = {vllm, sglang, trtllm};
    const rg_space *s = &run->space;
    const rg_candidate *c = &s->candidates[run->winner];
    const rg_usage u = rg_candidate_usage(s, c, run->outcomes[run->winner].replicas);
    const bool prompts = role == RG_ROLE_PROMPTS;
    const kind k = {s,
                    &s->arrangements[prompts ? c->prefill.arrangement : c->arrangement],
                    prompts ? &c->prefill.rules : &c->rules,
                    prompts ? &c->prefill.capacity : &c->capacity,
                    role,
                    prompts ? u.prefill : u.others,
                    prompts ? RG_SPEC_NONE : c->speculate};
    const spec_words x = words_of(&k);
    const char *vendor = s->machines[k.arrangement->machine].cluster->accel->vendor;
    for (int i = 0; i < 3; i++) {
        out[i] = NULL;
        if (engines[i] == trtllm && strcmp(vendor ? vendor : "", "nvidia") != 0)
            continue;
        line l = {.used = 0};
        engines[i](&l, &k);
        if (k.rules->speculation.drafts > 0 && !knows(&x, i))
            put(&l, "   # without its drafts: no option of this engine makes them%s",
                c->speculate == RG_SPEC_NONE ? "; --speculate names how" : " so");
        if (k.replicas > 1)
            put(&l, "   # %lld times, behind a router", (long long)k.replicas);
        out[i] = rg_arena_strdup(arena, l.text, NULL);
        out[i] = out[i] ? out[i] : "";
    }
}
