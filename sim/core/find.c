/* core/find.c: where data files live, and which file a name means. */
// SPDX-License-Identifier: Apache-2.0
#include "core/find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"

enum { MAX_ROOTS = 12, MAX_PATH_BYTES = 4096, MAX_ANCESTORS = 6, MAX_FILES = 4096 };

static const char ending[] = ".yaml";

/** Folders that may hold data folders, most telling first. */
typedef struct root_list {
    const char *path[MAX_ROOTS];
    dev_t device[MAX_ROOTS];
    ino_t node[MAX_ROOTS];
    int count;
} root_list;

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/** Add a folder; one that is absent, or there already under another name, is left out. */
static rg_status add_root(rg_arena *arena, root_list *roots, const char *path, rg_err *err)
{
    struct stat status;
    if (roots->count == MAX_ROOTS || stat(path, &status) != 0)
        return RG_OK;
    for (int i = 0; i < roots->count; i++)
        if (roots->device[i] == status.st_dev && roots->node[i] == status.st_ino)
            return RG_OK;
    const char *copy = rg_arena_strdup(arena, path, err);
    if (copy == NULL)
        return RG_ERR_LIMIT;
    roots->device[roots->count] = status.st_dev;
    roots->node[roots->count] = status.st_ino;
    roots->path[roots->count++] = copy;
    return RG_OK;
}

/** The checkout above the program (it has sim/ and hw/) and share/ridge beside its bin/. */
static rg_status add_program_roots(rg_arena *arena, root_list *roots, rg_err *err)
{
    char program[MAX_PATH_BYTES];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return RG_OK;
    program[length] = 0;
    for (int level = 0; level < MAX_ANCESTORS; level++) {
        char *slash = strrchr(program, '/');
        if (slash == NULL || slash == program)
            return RG_OK;
        *slash = 0;
        const char *sim = rg_arena_printf(arena, err, "%s/sim", program);
        const char *hw = rg_arena_printf(arena, err, "%s/hw", program);
        const char *share = rg_arena_printf(arena, err, "%s/share/ridge", program);
        if (sim == NULL || hw == NULL || share == NULL)
            return RG_ERR_LIMIT;
        if (is_folder(sim) && is_folder(hw))
            RG_TRY(add_root(arena, roots, program, err));
        if (level == 1 && is_folder(share))
            RG_TRY(add_root(arena, roots, share, err));
    }
    return RG_OK;
}

static rg_status find_roots(rg_arena *arena, root_list *roots, rg_err *err)
{
    const char *own = getenv("RIDGE_DATA");
    if (own != NULL && own[0] != 0)
        RG_TRY(add_root(arena, roots, own, err));
    RG_TRY(add_root(arena, roots, ".", err));
    RG_TRY(add_program_roots(arena, roots, err));
    return add_root(arena, roots, RG_PREFIX "/share/ridge", err);
}

/** Same name but for case and '_' against '-'; length bytes of each. */
static bool same_name(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char x = a[i], y = b[i];
        x = (char)(x == '_' ? '-' : x >= 'A' && x <= 'Z' ? x - 'A' + 'a' : x);
        y = (char)(y == '_' ? '-' : y >= 'A' && y <= 'Z' ? y - 'A' + 'a' : y);
        if (x != y)
            return false;
    }
    return true;
}

bool rg_data_is_path(const char *text)
{
    return strchr(text, '/') != NULL || rg_text_ends_with(text, ".yaml") ||
           rg_text_ends_with(text, ".yml") || rg_text_ends_with(text, ".json");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const rg_data_entry *)a)->name, ((const rg_data_entry *)b)->name);
}

/** Add what one folder holds and earlier folders do not; a folder that is absent holds nothing. */
static rg_status list_folder(rg_arena *arena, const char *folder, rg_data_entry *entries,
                             size_t *count, rg_err *err)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        if (errno == ENOENT || errno == ENOTDIR)
            return RG_OK;
        return rg_fail(err, RG_ERR_IO, RG_NOWHERE, "cannot read folder '%s': %s", folder,
                       strerror(errno));
    }
    rg_status status = RG_OK;
    const size_t earlier = *count;
    const struct dirent *item;
    while (status == RG_OK && (item = readdir(dir)) != NULL) {
        const size_t length = strlen(item->d_name);
        if (item->d_name[0] == '.' || !rg_text_ends_with(item->d_name, ending))
            continue;
        const size_t stem = length - (sizeof ending - 1);
        bool taken = false;
        for (size_t i = 0; i < earlier && !taken; i++)
            taken =
                strlen(entries[i].name) == stem && same_name(entries[i].name, item->d_name, stem);
        if (taken)
            continue;
        if (*count == MAX_FILES) {
            status = rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "folder '%s' has over %d files", folder,
                             MAX_FILES);
            break;
        }
        rg_data_entry *entry = &entries[*count];
        entry->name = rg_arena_copy(arena, item->d_name, stem, err);
        entry->path = strcmp(folder, ".") == 0
                          ? rg_arena_strdup(arena, item->d_name, err)
                          : rg_arena_printf(arena, err, "%s/%s", folder, item->d_name);
        if (entry->name == NULL || entry->path == NULL)
            status = RG_ERR_LIMIT;
        else
            (*count)++;
    }
    closedir(dir);
    return status;
}

/** Folder of a kind (length bytes of it) under a root, without a leading "./". */
static const char *kind_folder(rg_arena *arena, const char *root, const char *kind, size_t length,
                               rg_err *err)
{
    return strcmp(root, ".") == 0 ? rg_arena_copy(arena, kind, length, err)
                                  : rg_arena_printf(arena, err, "%s/%.*s", root, (int)length, kind);
}

rg_status rg_data_list(rg_arena *arena, const char *kind, const rg_data_entry **out, size_t *count,
                       rg_err *err)
{
    root_list roots = {0};
    *count = 0;
    RG_TRY(find_roots(arena, &roots, err));
    rg_data_entry *entries = RG_NEW(arena, rg_data_entry, MAX_FILES, err);
    if (entries == NULL)
        return RG_ERR_LIMIT;
    for (const char *part = kind; *part != 0; part += *part == ':') {
        const size_t length = strcspn(part, ":");
        for (int i = 0; i < roots.count; i++) {
            const char *folder = kind_folder(arena, roots.path[i], part, length, err);
            if (folder == NULL)
                return RG_ERR_LIMIT;
            RG_TRY(list_folder(arena, folder, entries, count, err));
        }
        part += length;
    }
    qsort(entries, *count, sizeof *entries, by_name);
    *out = entries;
    return RG_OK;
}

rg_status rg_data_try(rg_arena *arena, const char *kind, const char *name_or_path,
                      const char **path, rg_err *err)
{
    *path = name_or_path;
    if (rg_data_is_path(name_or_path))
        return RG_OK;
    const rg_data_entry *entries;
    size_t count;
    RG_TRY(rg_data_list(arena, kind, &entries, &count, err));
    const size_t length = strlen(name_or_path);
    for (size_t i = 0; i < count; i++)
        if (strlen(entries[i].name) == length && same_name(entries[i].name, name_or_path, length)) {
            *path = entries[i].path;
            return RG_OK;
        }
    *path = NULL;
    return RG_OK;
}

/** Whether a name begins with the letters and digits of text, signs and case aside. */
static bool begins_alike(const char *name, const char *text)
{
    for (;;) {
        while (*text && !isalnum((unsigned char)*text))
            text++;
        while (*name && !isalnum((unsigned char)*name))
            name++;
        if (!*text)
            return true;
        if (tolower((unsigned char)*name) != tolower((unsigned char)*text))
            return false;
        name++;
        text++;
    }
}

/** The first few names that begin so, as a list; false when there is none. */
static bool list_alike(const char *const *names, const char *text, char *list, size_t size)
{
    enum { MOST = 6 };
    size_t used = 0;
    int count = 0;
    for (; *names; names++)
        if (begins_alike(*names, text) && count++ < MOST && used < size)
            used +=
                (size_t)snprintf(list + used, size - used, "%s%s", count > 1 ? ", " : "", *names);
    if (count > MOST && used < size)
        snprintf(list + used, size - used, " and %d more", count - MOST);
    return count > 0;
}

/** The one name that begins with what was asked for and a '-'; otherwise say which names do, or
 * which is nearest, or that there is none. */
static rg_status widen(rg_arena *arena, const char *kind, const char *what, const char *name,
                       const char **path, rg_err *err)
{
    const rg_data_entry *entries;
    size_t count;
    RG_TRY(rg_data_list(arena, kind, &entries, &count, err));
    if (count == 0)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "no %s '%s': no folder '%s' was found; run ridge in its own folder or set "
                       "RIDGE_DATA",
                       what, name, kind);
    const char **names = RG_NEW(arena, const char *, count + 1, err);
    if (names == NULL)
        return RG_ERR_LIMIT;
    const size_t length = strlen(name);
    char list[512] = "";
    size_t used = 0, variants = 0;
    for (size_t i = 0; i < count; i++) {
        names[i] = entries[i].name;
        if (length == 0 || strlen(names[i]) <= length || !same_name(names[i], name, length) ||
            names[i][length] != '-')
            continue;
        *path = entries[i].path;
        const int written =
            snprintf(list + used, sizeof list - used, "%s%s", variants == 0 ? "" : ", ", names[i]);
        used += used + (size_t)written < sizeof list ? (size_t)written : 0;
        list[used] = 0;
        variants++;
    }
    if (variants == 1)
        return RG_OK;
    if (variants > 1)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "%s '%s' stands for several; name one of: %s",
                       what, name, list);
    const char *nearest = rg_text_nearest(name, names);
    if (nearest == NULL && name[0] && list_alike(names, name, list, sizeof list))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "no %s '%s'; names that begin alike: %s",
                       what, name, list);
    if (nearest != NULL)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "no %s '%s'; nearest is '%s'", what, name,
                       nearest);
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "no %s '%s'; `ridge list` shows what there is",
                   what, name);
}

rg_status rg_data_find(rg_arena *arena, const char *kind, const char *what,
                       const char *name_or_path, const char **path, rg_err *err)
{
    RG_TRY(rg_data_try(arena, kind, name_or_path, path, err));
    if (*path != NULL)
        return RG_OK;
    return widen(arena, kind, what, name_or_path, path, err);
}

rg_status rg_data_file(rg_arena *arena, const char *kind, const char *file, const char **path,
                       rg_err *err)
{
    root_list roots = {0};
    RG_TRY(find_roots(arena, &roots, err));
    for (int i = 0; i < roots.count; i++) {
        const char *candidate = rg_arena_printf(arena, err, "%s/%s/%s", roots.path[i], kind, file);
        if (candidate == NULL)
            return RG_ERR_LIMIT;
        if (access(candidate, R_OK) == 0) {
            *path = candidate;
            return RG_OK;
        }
    }
    return rg_fail(err, RG_ERR_IO, RG_NOWHERE,
                   "no file '%s/%s'; set RIDGE_DATA to the folder that holds '%s'", kind, file,
                   kind);
}
