/* model/load.c: a model by name, from a model YAML, or from a config.json. */
// SPDX-License-Identifier: Apache-2.0
#include "model/spec.h"

#include <string.h>

#include "core/file.h"
#include "core/find.h"
#include "core/text.h"

/* Last part of the path without its ending; of ".../name/config.json" the folder's name. */
static const char *name_of_path(rg_arena *arena, const char *path, rg_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash != NULL ? slash + 1 : path;
    size_t length = strlen(file);
    if (strcmp(file, "config.json") == 0 && slash != NULL && slash > path) {
        const char *end = slash;
        const char *start = end;
        while (start > path && start[-1] != '/')
            start--;
        if (end > start && *start != '.')
            return rg_arena_copy(arena, start, (size_t)(end - start), err);
    }
    const char *dot = strrchr(file, '.');
    if (dot != NULL && dot > file)
        length = (size_t)(dot - file);
    static const char tail[] = "_config"; /* "org--model_config.json" */
    const size_t tail_length = sizeof tail - 1;
    if (length > tail_length && memcmp(file + length - tail_length, tail, tail_length) == 0)
        length -= tail_length;
    return rg_arena_copy(arena, file, length, err);
}

/* hf_quant_config.json beside config.json, NAME.hf_quant_config.json beside NAME.json,
 * NAME_hf_quant_config.json beside NAME_config.json. */
static rg_status load_quant_file(rg_arena *arena, const char *path, rg_node **out, rg_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash != NULL ? slash + 1 : path;
    const int folder = (int)(file - path);
    const int stem = rg_text_ends_with(path, ".json") ? (int)strlen(path) - 5 : (int)strlen(path);
    const char *beside[2] = {rg_arena_printf(arena, err, "%.*s.hf_quant_config.json", stem, path)};
    if (strcmp(file, "config.json") == 0)
        beside[1] = rg_arena_printf(arena, err, "%.*shf_quant_config.json", folder, path);
    else if (rg_text_ends_with(path, "_config.json"))
        beside[1] = rg_arena_printf(arena, err, "%.*s_hf_quant_config.json", stem - 7, path);
    *out = NULL;
    for (int i = 0; i < 2; i++)
        if (beside[i] != NULL && strcmp(beside[i], path) != 0 && rg_file_exists(beside[i]))
            return rg_doc_load(arena, beside[i], out, err);
    return RG_OK;
}

rg_status rg_model_load_config(rg_arena *arena, const char *path, const char *family,
                               rg_model **out, rg_err *err)
{
    rg_node *config, *quant = NULL;
    RG_TRY(rg_doc_load(arena, path, &config, err));
    RG_TRY(load_quant_file(arena, path, &quant, err));
    const char *name = name_of_path(arena, path, err);
    if (name == NULL)
        return RG_ERR_LIMIT;
    return rg_model_import(arena, config, quant, family, name, out, err);
}

rg_status rg_model_load_changed(rg_arena *arena, const char *name_or_path,
                                const rg_changes *changes, rg_model **out, rg_err *err)
{
    const char *path;
    RG_TRY(rg_data_find(arena, "models", "model", name_or_path, &path, err));
    if (rg_text_ends_with(path, ".json")) {
        if (rg_changes_has(changes, "model"))
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "'%s' is a config.json; 'ridge import' makes a model file of it, which "
                           "can be changed",
                           path);
        return rg_model_load_config(arena, path, NULL, out, err);
    }
    rg_node *root;
    RG_TRY(rg_doc_load(arena, path, &root, err));
    RG_TRY(rg_changes_apply(root, "model", changes, err));
    RG_TRY(rg_model_read(arena, root, out, err));
    (*out)->path = path;
    return RG_OK;
}

rg_status rg_model_load(rg_arena *arena, const char *name_or_path, rg_model **out, rg_err *err)
{
    return rg_model_load_changed(arena, name_or_path, NULL, out, err);
}
