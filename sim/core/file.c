// SPDX-License-Identifier: Apache-2.0
#include "core/file.h"

#include <errno.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

rg_status rg_file_read(rg_arena *arena, const char *path, size_t cap_bytes, char **text,
                       size_t *length, rg_err *err)
{
    const rg_pos pos = {.file = path};
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return rg_fail(err, RG_ERR_IO, pos, "cannot be opened: %s", strerror(errno));
    size_t room = 16384, used = 0;
    struct stat stat_buffer;
    if (fstat(fileno(stream), &stat_buffer) == 0 && S_ISREG(stat_buffer.st_mode))
        room = (size_t)stat_buffer.st_size + 1;
    char *bytes = NULL;
    rg_status status = RG_OK;
    for (;;) {
        if (room > cap_bytes + 1)
            room = cap_bytes + 1;
        char *larger = rg_arena_alloc(arena, room + 1, 1, err);
        if (!larger) {
            status = RG_ERR_LIMIT;
            break;
        }
        if (used)
            memcpy(larger, bytes, used);
        bytes = larger;
        used += fread(bytes + used, 1, room - used, stream);
        if (ferror(stream)) {
            status = rg_fail(err, RG_ERR_IO, pos, "cannot be read: %s", strerror(errno));
            break;
        }
        if (used > cap_bytes) {
            status = rg_fail(err, RG_ERR_LIMIT, pos, "is larger than %zu MiB", cap_bytes >> 20);
            break;
        }
        if (used < room)
            break;
        room = used * 2;
    }
    fclose(stream);
    if (status != RG_OK)
        return status;
    bytes[used] = 0;
    *text = bytes;
    *length = used;
    return RG_OK;
}

bool rg_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Names of the temporaries that are there, for who has to leave at once. */
enum { OPEN_MOST = 16 };
static char open_names[OPEN_MOST][sizeof((rg_out_file *)0)->temporary];

static void note_open(const char *temporary)
{
    for (int i = 0; i < OPEN_MOST; i++)
        if (!open_names[i][0]) {
            snprintf(open_names[i], sizeof open_names[i], "%s", temporary);
            return;
        }
}

static void note_gone(const char *temporary)
{
    for (int i = 0; i < OPEN_MOST; i++)
        if (strcmp(open_names[i], temporary) == 0)
            open_names[i][0] = 0;
}

void rg_out_remove_open(void)
{
    for (int i = 0; i < OPEN_MOST; i++)
        if (open_names[i][0])
            unlink(open_names[i]);
}

rg_status rg_out_open(rg_out_file *file, const char *path, rg_err *err)
{
    const rg_pos pos = {.file = path};
    *file = (rg_out_file){0};
    if (strlen(path) >= sizeof file->path)
        return rg_fail(err, RG_ERR_IO, pos, "name is longer than %zu bytes", sizeof file->path);
    snprintf(file->path, sizeof file->path, "%s", path);
    struct stat stat_buffer;
    if (stat(path, &stat_buffer) == 0 && !S_ISREG(stat_buffer.st_mode)) {
        /* Devices and pipes are written in place: /dev/stdout, /dev/null, a fifo. */
        if (S_ISDIR(stat_buffer.st_mode))
            return rg_fail(err, RG_ERR_IO, pos, "is a folder, not a file to write");
        file->stream = fopen(path, "w");
        if (!file->stream)
            return rg_fail(err, RG_ERR_IO, pos, "cannot be written: %s", strerror(errno));
        return RG_OK;
    }
    snprintf(file->temporary, sizeof file->temporary, "%s.XXXXXX", path);
    const int descriptor = mkstemp(file->temporary);
    if (descriptor < 0) {
        file->temporary[0] = 0;
        return rg_fail(err, RG_ERR_IO, pos, "cannot be written: %s", strerror(errno));
    }
    note_open(file->temporary);
    const mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, 0666 & ~mask);
    file->stream = fdopen(descriptor, "w");
    if (!file->stream) {
        close(descriptor);
        rg_out_abandon(file);
        return rg_fail(err, RG_ERR_IO, pos, "cannot be written: %s", strerror(errno));
    }
    return RG_OK;
}

rg_status rg_out_commit(rg_out_file *file, rg_err *err)
{
    FILE *stream = file->stream;
    file->stream = NULL;
    int failure = fflush(stream) != 0 || ferror(stream) ? (errno ? errno : EIO) : 0;
    if (!failure && file->temporary[0] && fsync(fileno(stream)) != 0)
        failure = errno;
    if (fclose(stream) != 0 && !failure)
        failure = errno;
    if (!failure && file->temporary[0] && rename(file->temporary, file->path) != 0)
        failure = errno;
    if (failure) {
        rg_fail(err, RG_ERR_IO, (rg_pos){.file = file->path}, "cannot be written: %s",
                strerror(failure));
        rg_out_abandon(file);
        return RG_ERR_IO;
    }
    note_gone(file->temporary);
    file->temporary[0] = 0;
    return RG_OK;
}

void rg_out_abandon(rg_out_file *file)
{
    if (file->stream)
        fclose(file->stream);
    file->stream = NULL;
    if (file->temporary[0])
        unlink(file->temporary);
    note_gone(file->temporary);
    file->temporary[0] = 0;
}

rg_status rg_file_sha256(const char *path, char out[65], rg_err *err)
{
    if (!SHA256File(path, out))
        return rg_fail(err, RG_ERR_IO, (rg_pos){.file = path}, "cannot be read: %s",
                       strerror(errno));
    return RG_OK;
}

void rg_bytes_sha256(const void *bytes, size_t length, char out[65])
{
    SHA256Data(bytes, length, out);
}
