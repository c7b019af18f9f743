/* step/speculate.h: speculative decoding: drafts, verification, and what comes out per pass.
 *
 * Reads step/step.h. A pass verifies drafts beside the one token that is sure; how many drafts are
 * kept is a matter of acceptance, what they cost a matter of the draft and of the batch.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_STEP_SPECULATE_H
#define RG_STEP_SPECULATE_H

#include "step/step.h"

typedef enum rg_spec_kind {
    RG_SPEC_NONE,
    RG_SPEC_DRAFT_MODEL, /* a smaller model writes the drafts one by one */
    RG_SPEC_SELF,        /* the model's own first layers and its head (early exit) */
    RG_SPEC_MEDUSA,      /* extra heads, one for each position, in one go */
    RG_SPEC_EAGLE,       /* one layer that reads hidden states, once for each depth */
    RG_SPEC_MTP,         /* multi-token prediction: the checkpoint's own extra layer, likewise */
    RG_SPEC_COUNT,
} rg_spec_kind;
const char *rg_spec_kind_name(rg_spec_kind kind);
rg_status rg_spec_kind_parse(const char *name, rg_spec_kind *out, rg_err *err);

enum { RG_SPEC_MOST_DEPTH = 64 };

typedef struct rg_spec {
    rg_spec_kind kind;
    int64_t depth;                   /* drafts in a row */
    double acceptance;               /* chance that a draft is right when all before it are; 0..1 */
    double list[RG_SPEC_MOST_DEPTH]; /* the same by position, when list_count > 0 */
    int list_count;
    int64_t width[RG_SPEC_MOST_DEPTH]; /* tree: candidates at each depth; 0 counts as 1 */
    rg_step_context *draft; /* draft model, early exit, EAGLE, MTP: prepared by the caller */
} rg_spec;

/** Candidates that a pass verifies: sum of the widths. */
int64_t rg_spec_nodes(const rg_spec *spec);

/** Expected tokens of a pass, the sure one counted:
 *
 *   1 + sum over i of product of a_1 .. a_i,   for one rate a: (1 - a^(depth+1)) / (1 - a)
 *
 * (Leviathan, Kalman and Matias 2023, "Fast Inference from Transformers via Speculative Decoding",
 * equation 1). A tree of w candidates at a depth is taken to hold the right one with chance
 * 1 - (1 - a)^w: assumed, as if candidates were tried independently; a list by position counts as
 * it is given, for the whole depth. Errors: RG_ERR_MODEL for rates outside 0..1 or a bad depth. */
rg_status rg_spec_expected_tokens(const rg_spec *spec, double *out, rg_err *err);

typedef struct rg_spec_time {
    rg_seconds draft, verify; /* one pass: drafting, verification with the engine's own time */
    rg_seconds plain;         /* a pass without speculation */
    double tokens_per_pass;   /* expected, of each sequence */
    rg_seconds per_token;     /* (draft + verify) / tokens_per_pass */
    double speedup;           /* plain / per_token */
} rg_spec_time;

/** Time of a decode pass (tokens_per_decode is set here) with speculation. */
rg_status rg_spec_time_of(rg_step_context *target, const rg_spec *spec, const rg_pass *decode,
                          rg_spec_time *out, rg_err *err);

/** Least batch of sequences of this context at which speculation no longer pays, or 0 when it pays
 * up to most; 1 when it never does. Speedup need not fall at every step of the batch; the answer is
 * the first batch, doubling from 1 and then halving the interval, that is at or below 1. */
rg_status rg_spec_break_even(rg_step_context *target, const rg_spec *spec, double context_tokens,
                             int64_t most, int64_t *out, rg_err *err);

/** Time that drafting adds to a pass, whose prompts go through the draft too: depth passes of the
 * draft, or the heads of Medusa. 0 for a pass without decodes and prompts. */
rg_status rg_spec_draft_time(rg_step_context *target, const rg_spec *spec, const rg_pass *pass,
                             rg_seconds *out, rg_err *err);

/** A model of layers first .. first + count - 1, with embedding and head. Shares everything else
 * with model. */
rg_status rg_spec_layers(rg_arena *arena, const rg_model *model, int64_t first, int64_t count,
                         rg_model **out, rg_err *err);

/** What writes the drafts of a target: a model, its formats and how it is spread. */
typedef struct rg_spec_draft {
    const rg_model *model; /* NULL: none, or Medusa's heads */
    rg_formats formats;
    rg_parallel parallel;
} rg_spec_draft;

/** draft_model: the model of that name, its weights as its checkpoint has them, over the tp ranks
 * of the target. self: its first exit_layers layers (0: a quarter). eagle: one layer like its
 * first. mtp: one like its last. Drafts of the target's own layers run on one stage of a pipeline.
 * Errors: RG_ERR_USAGE for a draft_model without a name, those of loading. */
rg_status rg_spec_draft_of(rg_arena *arena, rg_spec_kind kind, const rg_model *target,
                           const rg_formats *formats, const rg_parallel *parallel,
                           const char *draft_name, int64_t exit_layers, rg_spec_draft *out,
                           rg_err *err);

/** Memory of the draft on a rank: weights beside those of the target, which share embedding and
 * head with EAGLE and MTP and all with self; KV bytes of a token. */
void rg_spec_memory(rg_spec_kind kind, int64_t depth, const rg_model *target,
                    const rg_formats *formats, const rg_parallel *parallel,
                    const rg_spec_draft *draft, double *weight_bytes, double *token_bytes);

#endif
