// SPDX-License-Identifier: Apache-2.0
#include "core/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void rg_err_set(rg_err *err, rg_status status, rg_pos pos, const char *format, ...)
{
    if (!err)
        return;
    err->status = status;
    err->pos = pos;
    err->file[0] = 0;
    if (pos.file) {
        snprintf(err->file, sizeof err->file, "%s", pos.file);
        err->pos.file = err->file;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
}

void rg_err_format(const rg_err *err, char *out, int size)
{
    const char *file = err->file;
    if (!file[0])
        snprintf(out, (size_t)size, "%s", err->text);
    else if (err->pos.line <= 0)
        snprintf(out, (size_t)size, "%s: %s", file, err->text);
    else if (err->pos.column <= 0)
        snprintf(out, (size_t)size, "%s:%d: %s", file, err->pos.line, err->text);
    else
        snprintf(out, (size_t)size, "%s:%d:%d: %s", file, err->pos.line, err->pos.column,
                 err->text);
}

int rg_status_exit_code(rg_status status)
{
    switch (status) {
    case RG_OK:
        return 0;
    case RG_ERR_NO:
        return 1;
    case RG_ERR_DEVICE:
    case RG_ERR_UNSURE:
        return 3;
    case RG_ERR_APART:
        return 4;
    case RG_ERR_SKIP:
        return 77;
    default:
        return 2;
    }
}
