/* cli/serve_settings.c: settings of serve from the command line and a scenario file. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

#include <string.h>

#include "core/text.h"

enum { MAX_OPTIONS = 128 };

rg_status rg_scenario_read(rg_node *root, const rg_option *options, rg_err *err)
{
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "a scenario", err));
    const char *names[MAX_OPTIONS + 1] = {NULL};
    for (int i = 0; options[i].name && i < MAX_OPTIONS; i++)
        names[i] = options[i].name;
    for (rg_node *n = root->first; n; n = n->next) {
        const char *name = n->key ? rg_text_synonym(n->key, names) : NULL;
        if (!name || strcmp(name, n->key) == 0)
            continue;
        if (rg_map_find(root, name))
            return rg_fail(err, RG_ERR_INPUT, n->key_pos, "'%s' means '%s', which is given too",
                           n->key, name);
        n->key = name;
    }
    for (const rg_option *o = options; o->name; o++)
        rg_map_find(root, o->name);
    const rg_node *kind = rg_map_find(root, "kind");
    for (const rg_node *n = root->first; n; n = n->next)
        if (n->kind != RG_NODE_SCALAR)
            return rg_fail(err, RG_ERR_INPUT, n->pos, "'%s' must be a single value",
                           n->key ? n->key : "?");
    if (kind && strcmp(kind->text, "serve") != 0)
        return rg_fail(err, RG_ERR_INPUT, kind->pos, "kind is '%.40s'; a scenario says 'serve'",
                       kind->text);
    return rg_map_done(root, err);
}

rg_status rg_settings_open(rg_arena *arena, const rg_args *args, const rg_option *options,
                           rg_settings *out, rg_err *err)
{
    *out = (rg_settings){.arena = arena, .args = args};
    if (rg_arg_operands(args) == 0)
        return RG_OK;
    out->path = rg_arg_operand(args, 0);
    RG_TRY(rg_doc_load(arena, out->path, &out->scenario, err));
    return rg_scenario_read(out->scenario, options, err);
}

const char *rg_setting(const rg_settings *s, const char *name, rg_pos *pos)
{
    *pos = RG_NOWHERE;
    if (!rg_arg_given(s->args, name) && s->scenario) {
        rg_node *node = rg_map_find(s->scenario, name);
        if (node && !rg_node_is_null(node)) {
            *pos = node->pos;
            return node->text;
        }
    }
    return rg_arg_text(s->args, name);
}

bool rg_setting_given(const rg_settings *s, const char *name)
{
    if (rg_arg_given(s->args, name))
        return true;
    rg_node *node = s->scenario ? rg_map_find(s->scenario, name) : NULL;
    return node && !rg_node_is_null(node);
}

bool rg_setting_flag(const rg_settings *s, const char *name)
{
    if (rg_arg_flag(s->args, name))
        return true;
    rg_node *node = s->scenario ? rg_map_find(s->scenario, name) : NULL;
    bool value = false;
    return node && rg_node_bool(node, &value, NULL) == RG_OK && value;
}

/* An option that serve does not have counts as not set. */
static const char *look_up(const void *from, const char *name, rg_pos *pos)
{
    const rg_settings *s = from;
    rg_node *node = s->scenario ? rg_map_find(s->scenario, name) : NULL;
    const rg_lookup options = rg_arg_lookup(s->args);
    if (node && !rg_node_is_null(node) && !rg_arg_given(s->args, name)) {
        *pos = node->pos;
        return node->text;
    }
    *pos = RG_NOWHERE;
    return rg_lookup_text(&options, name);
}

rg_lookup rg_setting_lookup(const rg_settings *s)
{
    return (rg_lookup){look_up, s};
}

rg_status rg_setting_int(const rg_settings *s, const char *name, int64_t least, int64_t most,
                         int64_t *out, rg_err *err)
{
    const rg_lookup l = rg_setting_lookup(s);
    return rg_lookup_int(&l, name, least, most, out, err);
}

rg_status rg_setting_real(const rg_settings *s, const char *name, double least, double most,
                          double *out, rg_err *err)
{
    const rg_lookup l = rg_setting_lookup(s);
    return rg_lookup_real(&l, name, least, most, out, err);
}

rg_status rg_setting_quantity(const rg_settings *s, const char *name, rg_dim dim, double *out,
                              rg_err *err)
{
    rg_pos pos;
    const char *text = rg_setting(s, name, &pos);
    return text ? rg_quantity_parse(text, dim, pos, name, out, err) : RG_OK;
}

rg_status rg_setting_choice(const rg_settings *s, const char *name, const char *const *names,
                            int *out, rg_err *err)
{
    rg_pos pos;
    const char *text = rg_setting(s, name, &pos);
    if (!text)
        return RG_OK;
    for (int i = 0; names[i]; i++) {
        if (strcmp(text, names[i]) != 0)
            continue;
        *out = i;
        return RG_OK;
    }
    const char *all = names[0];
    for (int i = 1; names[i]; i++)
        all = rg_arena_printf(s->arena, err, "%s, %s", all, names[i]);
    const rg_lookup l = rg_setting_lookup(s);
    return rg_lookup_fail(&l, name, err, "one of %s", all ? all : "");
}
