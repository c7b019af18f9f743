/* cli/setup.h: the options that say which machine, which model and which arrangement.
 *
 * Reads step, hw, model. Shared by estimate, roofline, serve, plan and train, so that an option
 * means the same everywhere. What is defaulted is written into the report's assumptions.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_SETUP_H
#define RG_CLI_SETUP_H

#include "cli/args.h"
#include "step/step.h"

/* Rows for a command's option table. */
#define RG_SETUP_MACHINE                                                                \
    {                                                                                   \
        "hw", 0, "NAME", NULL, "accelerator, node or cluster: name or YAML file", false \
    }
#define RG_SETUP_MODEL                                                                           \
    {                                                                                            \
        "model", 'm', "NAME", NULL, "model: name, model YAML or Hugging Face config.json", false \
    }
#define RG_SETUP_FORMATS                                                                    \
    {"weight-type",                                                                         \
     0,                                                                                     \
     "TYPE",                                                                                \
     NULL,                                                                                  \
     "weights: bf16, fp8, fp8_block, int8, int4_g128, nvfp4, mxfp4 ... [the checkpoint's]", \
     false},                                                                                \
        {"kv-type",                                                                         \
         0,                                                                                 \
         "TYPE",                                                                            \
         NULL,                                                                              \
         "KV cache: bf16, fp8, int8, int4_g64, int2_g32 ... [the "                          \
         "checkpoint's, else bf16]",                                                        \
         false},                                                                            \
        {"kv-layout",                                                                       \
         0,                                                                                 \
         "LAYOUT",                                                                          \
         "ideal",                                                                           \
         "what is kept: ideal, window_capped, uniform_page, mla_latent, mla_expanded",      \
         false},                                                                            \
        {"act-type", 0, "TYPE", "bf16", "activations in memory", false},                    \
        {"unfused", 0, NULL, NULL, "attention writes its scores to memory", false},         \
    {                                                                                       \
        "moe-skew", 0, "A", "0", "power-law exponent of expert loads; 0 is balanced", false \
    }
#define RG_SETUP_PARALLEL                                                                      \
    {"tp", 0, "N", "1", "tensor-parallel ranks", false},                                       \
        {"pp", 0, "N", "1", "pipeline stages", false},                                         \
        {"ep", 0, "N", "1", "expert-parallel ranks", false},                                   \
        {"cp", 0, "N", "1", "ranks that split the KV of a sequence", false},                   \
        {"dp", 0, "N", "1", "replicas", false},                                                \
        {"attention-dp", 0, NULL, NULL, "data-parallel attention within the tp group", false}, \
    {                                                                                          \
        "sequence-parallel", 0, NULL, NULL,                                                    \
            "reduce-scatter and all-gather in place of all-reduce", false                      \
    }
/* What splits a pass further; where a command takes the arrangement of one step. */
#define RG_SETUP_SPLITS                                                                          \
    {                                                                                            \
        "micro-batches",                                                                         \
        0,                                                                                       \
        "N",                                                                                     \
        NULL,                                                                                    \
        "parts of a pass over the pipeline [as many as stages]",                                 \
        false},                                                                                  \
        {"all-to-all",                                                                           \
         0,                                                                                      \
         NULL,                                                                                   \
         NULL,                                                                                   \
         "tokens go to their experts by all-to-all, not gather and scatter",                     \
         false},                                                                                 \
        {"expert-replicas", 0, "N", "0", "extra copies of the busiest experts", false},          \
        {"expert-load", 0, "X,X,...", NULL, "share of the rows of each expert", false},          \
        {"capacity-factor",                                                                      \
         0,                                                                                      \
         "X",                                                                                    \
         NULL,                                                                                   \
         "room of an expert over its even share: pads up to it",                                 \
         false},                                                                                 \
        {"capacity-drop", 0, NULL, NULL, "tokens beyond the capacity are dropped", false},       \
    {                                                                                            \
        "cp-gather", 0, NULL, NULL, "cp gathers keys and values, not passed round a ring", false \
    }
#define RG_SETUP_KERNEL                                                                      \
    {"ideal", 0, NULL, NULL, "bare roofline: every efficiency 1, no fixed cost", false},     \
    {                                                                                        \
        "sustained", 0, NULL, NULL, "long runs under the power cap instead of bursts", false \
    }
#define RG_SETUP_ENGINE                                                                            \
    {                                                                                              \
        "engine", 0, "NAME", "vllm", "serving engine's constants: vllm, sglang, trtllm or a YAML", \
            false                                                                                  \
    }

#define RG_SETUP_CHANGES                                                                   \
    {                                                                                      \
        "set", 0, "PATH=VALUE", NULL,                                                      \
            "what-if: hw.memory.hbm.bandwidth=x1.5, cluster..., model..., engine...", true \
    }

typedef struct rg_setup {
    rg_changes changes;
    rg_cluster *cluster;
    rg_accel *accel;
    rg_model *model;
    rg_formats formats;
    rg_parallel parallel;
    rg_engine engine;
    rg_kernel_options kernel;
} rg_setup;

/** What-if changes: --set. Before the others, which apply them. Each becomes an assumption. */
rg_status rg_setup_changes(rg_arena *arena, const rg_args *args, rg_report *report, rg_setup *out,
                           rg_err *err);
/** Machine alone: --hw. */
rg_status rg_setup_machine(rg_arena *arena, const rg_args *args, rg_report *report, rg_setup *out,
                           rg_err *err);
/** rg_formats_expand, with what it changed among the report's assumptions. */
void rg_setup_expand(const rg_accel *accel, rg_formats *f, rg_report *report);
/** Model and formats: --model, --weight-type ... */
rg_status rg_setup_model(rg_arena *arena, const rg_args *args, rg_report *report, rg_setup *out,
                         rg_err *err);
/** Arrangement and kernel model: --tp ..., --ideal, --sustained, and RG_SETUP_SPLITS where the
 * command has them. */
rg_status rg_setup_arrangement(rg_arena *arena, const rg_args *args, rg_report *report,
                               rg_setup *out, rg_err *err);
/** Engine constants: --engine. After the arrangement; --ideal leaves the engine's own time out. */
rg_status rg_setup_engine(rg_arena *arena, const rg_args *args, rg_report *report, rg_setup *out,
                          rg_err *err);

#endif
