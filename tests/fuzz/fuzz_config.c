/* Any bytes as config.json and as model YAML: an error, or a model that can be counted, written and
 * read back; never a crash. */
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/doc.h"
#include "model/pass.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_model(rg_arena *arena, const rg_model *m)
{
    rg_err err = {0};
    rg_formats formats;
    char *text;
    rg_node *root;
    rg_model *back;
    const rg_shard whole = {.embedding = true, .head = true};
    const rg_chunk chunk = {.new_tokens = 7, .past_tokens = 3};
    const rg_pass pass = {.chunks = &chunk, .chunk_count = 1, .decodes = 2, .decode_kv_tokens = 9};
    rg_op_list ops;
    assert(m->parameters_total >= 0 && m->parameters_active <= m->parameters_total);
    assert(rg_model_write(arena, m, &text, &err) == RG_OK);
    assert(rg_doc_parse(arena, "back.yaml", text, strlen(text), false, &root, &err) == RG_OK);
    assert(rg_model_read(arena, root, &back, &err) == RG_OK);
    assert(back->parameters_total == m->parameters_total);
    if (rg_formats_choose(m, NULL, NULL, NULL, &formats, &err) == RG_OK)
        (void)rg_pass_ops(arena, m, &formats, &whole, &pass, &ops, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int json = 0; json < 2; json++) {
        rg_arena *arena = rg_arena_new(256);
        rg_node *root = NULL;
        rg_model *m = NULL;
        rg_err err = {0};
        rg_status status =
            rg_doc_parse(arena, "fuzz", (const char *)data, size, json != 0, &root, &err);
        if (status == RG_OK)
            status = json ? rg_model_import(arena, root, NULL, NULL, "fuzz", &m, &err)
                          : rg_model_read(arena, root, &m, &err);
        if (status == RG_OK)
            use_model(arena, m);
        else
            assert(err.text[0] != '\0');
        rg_arena_free(arena);
    }
    return 0;
}
