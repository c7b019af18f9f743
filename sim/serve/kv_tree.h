/* serve/kv_tree.h: KV memory with a radix tree in place of named blocks: what a sequence holds is
 * counted, and what it shares lies in the tree. Private to serve/kv.c, which promises what these
 * do, and to the scheduler of SGLang.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_KV_TREE_H
#define RG_SERVE_KV_TREE_H

#include "serve/kv.h"

/** Take so many blocks, which must fit, for sequences whose count the caller raises. */
void rg_kv_tree_reserve(rg_kv_pool *pool, int32_t blocks);
/** What others computed meanwhile is used in place of the sequence's own blocks. */
void rg_kv_tree_register(rg_kv_pool *pool, rg_kv_seq *seq, int64_t tokens);
/** Only its own blocks are given back while some are kept. */
void rg_kv_tree_shrink(rg_kv_pool *pool, rg_kv_seq *seq, int32_t keep);
/** Room of an array of so many names. */
int32_t rg_kv_room(int64_t count);

#endif
