/* plan/journal.h: finished rows on disk, so that a long run resumes where it was killed.
 *
 * Reads core. OUTPUT.shard-I-of-N.part holds a first line with the digest of what is computed, then
 * a line "INDEX CHECK ROW" for each finished cell, appended by one write. A line that a kill cut
 * short fails its check and is dropped. When the journals of all shards are complete, the rows go
 * into OUTPUT in order of their index, and the journals are removed.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_JOURNAL_H
#define RG_PLAN_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"

typedef struct rg_journal rg_journal;

/** Open or begin the journal of one shard; reads what is there, cuts a broken tail off, and locks
 * it against a second process. Errors: RG_ERR_INPUT when it belongs to another digest or is in use,
 * RG_ERR_IO. */
rg_status rg_journal_open(rg_arena *arena, const char *output, const char *digest, int64_t cells,
                          int64_t shard, int64_t shards, rg_journal **out, rg_err *err);
void rg_journal_close(rg_journal *journal);
/** Close and remove: what was to be computed holds a mistake, so that no later run can go on. */
void rg_journal_drop(rg_journal *journal);
bool rg_journal_has(const rg_journal *journal, int64_t index);
/** Append one finished row (no line feed in it). Safe from several threads. */
rg_status rg_journal_append(rg_journal *journal, int64_t index, const char *row, rg_err *err);

/** Whether OUTPUT is there and its first line names this digest. */
bool rg_journal_is_done(const char *output, const char *digest);

/** Write OUTPUT when all journals are complete; *complete says whether it is there now. */
rg_status rg_journal_merge(rg_arena *arena, const char *output, const char *digest, int64_t cells,
                           int64_t shards, const char *header, bool *complete, rg_err *err);

#endif
