/* core/err.h: status, error text and place of a mistake.
 *
 * Reads nothing. Every function that may fail through input, files, memory or a device returns
 * rg_status and takes a trailing rg_err *. Callers write RG_TRY(call).
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_ERR_H
#define RG_CORE_ERR_H

/** What went wrong, in the order of how a caller reacts to it. */
typedef enum rg_status {
    RG_OK = 0,
    RG_ERR_INPUT,  /* a mistake in a user's file; has a place */
    RG_ERR_USAGE,  /* a mistake on the command line */
    RG_ERR_IO,     /* a file cannot be read or written */
    RG_ERR_LIMIT,  /* input beyond a cap of size, depth or memory */
    RG_ERR_MODEL,  /* asked for something that the model does not hold for or cannot do */
    RG_ERR_NO,     /* the answer is no: limits not met, verdict failed */
    RG_ERR_DEVICE, /* no device, no permission, broken driver */
    RG_ERR_UNSURE, /* no answer: what was measured does not decide (guard --strict) */
    RG_ERR_APART,  /* no answer: nothing to compare with, or not alike (guard) */
    RG_ERR_SKIP,   /* nothing was done, as the run says that it had no device */
} rg_status;

/** Place in a file; line and column from 1, 0 when unknown; file NULL when there is none. */
typedef struct rg_pos {
    const char *file;
    int line;
    int column;
} rg_pos;

enum { RG_ERR_TEXT_SIZE = 1024 };

/** One error: the first one wins, and nothing is printed below report/ and cli/. */
typedef struct rg_err {
    rg_status status;
    rg_pos pos;
    char file[256]; /* copy of pos.file, so that the error outlives the arena */
    char text[RG_ERR_TEXT_SIZE];
} rg_err;

/** Fill err (which may be NULL). The text says what is wrong, the value in quotes, and what would
 * do. Callers use rg_fail, which has the status as its value: return rg_fail(err, ...). */
void rg_err_set(rg_err *err, rg_status status, rg_pos pos, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static inline rg_status rg_status_of(rg_status status)
{
    return status;
}
#define rg_fail(err, status, ...) (rg_err_set((err), (status), __VA_ARGS__), rg_status_of(status))

/** "file:line:column: text" into out, cut to size. */
void rg_err_format(const rg_err *err, char *out, int size);

/** Exit code for a status: 0 fine, 1 the answer is no, 2 usage or input, 3 device or unsure, 4
 * apart, 77 skipped. */
int rg_status_exit_code(rg_status status);

#define RG_NOWHERE ((rg_pos){0})

#define RG_TRY(call)                       \
    do {                                   \
        rg_status rg_try_status_ = (call); \
        if (rg_try_status_ != RG_OK)       \
            return rg_try_status_;         \
    } while (0)

#endif
