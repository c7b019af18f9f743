/* core/file.h: whole files in, whole files out.
 *
 * Reads core/arena.h. Output goes to a temporary file beside the target and is renamed on commit,
 * so a reader sees the old file or the new one, never a part.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_FILE_H
#define RG_CORE_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/arena.h"

/** The whole file (at most cap_bytes) with a 0 behind. A directory, a missing or an unreadable file
 * is RG_ERR_IO with the system's reason. */
rg_status rg_file_read(rg_arena *arena, const char *path, size_t cap_bytes, char **text,
                       size_t *length, rg_err *err);
bool rg_file_exists(const char *path);

typedef struct rg_out_file {
    FILE *stream; /* write here */
    char path[4096];
    char temporary[4096 + 16];
} rg_out_file;
/** Open a temporary beside path. */
rg_status rg_out_open(rg_out_file *file, const char *path, rg_err *err);
/** Flush, sync and rename; on any failure the target is untouched and the temporary removed. */
rg_status rg_out_commit(rg_out_file *file, rg_err *err);
/** Drop the temporary; safe to call after a commit. */
void rg_out_abandon(rg_out_file *file);
/** Remove the temporaries of all files that are open, from a signal handler. */
void rg_out_remove_open(void);

/** SHA-256 of the file's bytes as 64 hexadecimal digits and a 0. */
rg_status rg_file_sha256(const char *path, char out[65], rg_err *err);
/** The same of length bytes in memory. */
void rg_bytes_sha256(const void *bytes, size_t length, char out[65]);

#endif
