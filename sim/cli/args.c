// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

enum { MAX_OPTIONS = 128, MAX_SYNONYMS = 8, FIRST_CODE = 1000 };

const rg_option rg_common_options[] = {
    {"format", 'f', "FORM", "text", "output form: text, csv, json or html", false},
    {"output", 'o', "FILE", NULL, "write the result to FILE, whole or not at all", false},
    {"quiet", 'q', NULL, NULL, "no progress and no notes on stderr", false},
    {"seed", 0, "N", "1", "seed of everything random", false},
    {"own-time", 0, NULL, NULL, "say on stderr how long ridge itself took", false},
    {"help", 'h', NULL, NULL, "print this help", false},
    {NULL, 0, NULL, NULL, NULL, false},
};

typedef struct given {
    const char *value;
    struct given *next;
} given;

struct rg_args {
    const rg_command *command;
    const rg_option *options[MAX_OPTIONS];
    given *values[MAX_OPTIONS]; /* in order */
    int count;
    char **operands;
    int operand_count;
};

static rg_status unknown_option(const rg_args *args, const char *text, rg_err *err)
{
    const char *names[MAX_OPTIONS + 1] = {NULL};
    for (int i = 0; i < args->count; i++)
        names[i] = args->options[i]->name;
    char name[64];
    const char *stem = text + strspn(text, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(stem, "="), stem);
    const char *nearest = rg_text_nearest(name, names);
    if (nearest)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "unknown option '%s'; did you mean '--%s'?",
                       text, nearest);
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "unknown option '%s'; see 'ridge %s --help'",
                   text, args->command->name);
}

static rg_status add_value(rg_arena *arena, rg_args *args, int index, const char *value,
                           rg_err *err)
{
    given **tail = &args->values[index];
    if (*tail && !args->options[index]->repeatable)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "option --%s is given twice; give it once",
                       args->options[index]->name);
    while (*tail)
        tail = &(*tail)->next;
    *tail = RG_NEW(arena, given, 1, err);
    if (!*tail)
        return RG_ERR_LIMIT;
    (*tail)->value = value;
    return RG_OK;
}

/* Other names for what the command knows under one. */
static void add_synonyms(const rg_args *args, struct option *longs)
{
    const char *names[MAX_OPTIONS + 1] = {NULL};
    int count = args->count;
    for (int i = 0; i < args->count; i++)
        names[i] = args->options[i]->name;
    for (int i = 0; i < args->count; i++) {
        const char *const *same = rg_text_synonyms(names[i]);
        for (; same && *same && count < MAX_OPTIONS + MAX_SYNONYMS; same++)
            if (rg_text_synonym(*same, names) == names[i] && strcmp(*same, names[i]) != 0)
                longs[count++] = (struct option){*same, longs[i].has_arg, NULL, longs[i].val};
    }
}

rg_status rg_args_parse(rg_arena *arena, const rg_command *command, int argc, char **argv,
                        rg_args **out, rg_err *err)
{
    rg_args *args = RG_NEW(arena, rg_args, 1, err);
    if (!args)
        return RG_ERR_LIMIT;
    *out = args;
    args->command = command;
    struct option longs[MAX_OPTIONS + MAX_SYNONYMS + 1] = {{0}};
    char shorts[3 * MAX_OPTIONS + 2] = ":";
    size_t used = 1;
    const rg_option *tables[] = {command->options, rg_common_options};
    for (int t = 0; t < 2; t++)
        for (const rg_option *o = tables[t]; o && o->name; o++) {
            assert(args->count < MAX_OPTIONS);
            longs[args->count] =
                (struct option){o->name, o->argument ? required_argument : no_argument, NULL,
                                FIRST_CODE + args->count};
            if (o->letter) {
                shorts[used++] = o->letter;
                if (o->argument)
                    shorts[used++] = ':';
            }
            args->options[args->count++] = o;
        }
    add_synonyms(args, longs);
    opterr = 0;
    optind = 0; /* glibc: start anew */
    for (;;) {
        const int at = optind ? optind : 1;
        const int code = getopt_long(argc, argv, shorts, longs, NULL);
        if (code == -1)
            break;
        if (code == '?')
            return unknown_option(args,
                                  optopt && optopt < FIRST_CODE && argv[at][1] != '-'
                                      ? (char[]){'-', (char)optopt, 0}
                                      : argv[optind - 1],
                                  err);
        if (code == ':')
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "option '%s' needs a value",
                           argv[optind - 1]);
        int index = code - FIRST_CODE;
        if (code < FIRST_CODE)
            for (index = 0; args->options[index]->letter != code; index++)
                ;
        RG_TRY(add_value(arena, args, index, optarg ? optarg : "", err));
    }
    args->operands = argv + optind;
    args->operand_count = argc - optind;
    if (rg_arg_flag(args, "help"))
        return RG_OK;
    if (args->operand_count < command->least_operands)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "missing %s; see 'ridge %s --help'",
                       command->operands, command->name);
    if (command->most_operands >= 0 && args->operand_count > command->most_operands)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "unexpected '%s'; options begin with '--', see 'ridge %s --help'",
                       args->operands[command->most_operands], command->name);
    return RG_OK;
}

static int index_of(const rg_args *args, const char *name)
{
    int i = 0;
    while (i < args->count && strcmp(args->options[i]->name, name) != 0)
        i++;
    assert(i < args->count && "option is declared in the command's row");
    return i;
}

const char *rg_arg_text(const rg_args *args, const char *name)
{
    const int i = index_of(args, name);
    return args->values[i] ? args->values[i]->value : args->options[i]->fallback;
}

bool rg_arg_given(const rg_args *args, const char *name)
{
    return args->values[index_of(args, name)] != NULL;
}

bool rg_arg_flag(const rg_args *args, const char *name)
{
    return rg_arg_given(args, name);
}

static rg_status need(const rg_args *args, const char *name, const char **text, rg_err *err)
{
    *text = rg_arg_text(args, name);
    if (*text)
        return RG_OK;
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "missing option --%s %s; see 'ridge %s --help'",
                   name, args->options[index_of(args, name)]->argument, args->command->name);
}

/* An option that the command does not have counts as not given. */
static const char *look_up(const void *from, const char *name, rg_pos *pos)
{
    const rg_args *args = from;
    *pos = RG_NOWHERE;
    for (int i = 0; i < args->count; i++) {
        if (strcmp(args->options[i]->name, name) != 0)
            continue;
        if (!args->options[i]->argument)
            return args->values[i] ? "true" : NULL;
        return args->values[i] ? args->values[i]->value : args->options[i]->fallback;
    }
    return NULL;
}

rg_lookup rg_arg_lookup(const rg_args *args)
{
    return (rg_lookup){look_up, args};
}

rg_status rg_arg_int(const rg_args *args, const char *name, int64_t least, int64_t most,
                     int64_t *out, rg_err *err)
{
    const char *text;
    const rg_lookup l = rg_arg_lookup(args);
    RG_TRY(need(args, name, &text, err));
    return rg_lookup_int(&l, name, least, most, out, err);
}

rg_status rg_arg_real(const rg_args *args, const char *name, double least, double most, double *out,
                      rg_err *err)
{
    const char *text;
    const rg_lookup l = rg_arg_lookup(args);
    RG_TRY(need(args, name, &text, err));
    return rg_lookup_real(&l, name, least, most, out, err);
}

rg_status rg_arg_quantity(const rg_args *args, const char *name, rg_dim dim, double *out,
                          rg_err *err)
{
    const char *text;
    RG_TRY(need(args, name, &text, err));
    char what[80];
    snprintf(what, sizeof what, "option --%s", name);
    const rg_status status = rg_quantity_parse(text, dim, RG_NOWHERE, what, out, err);
    if (status != RG_OK && err)
        err->status = RG_ERR_USAGE;
    return status == RG_OK ? RG_OK : RG_ERR_USAGE;
}

rg_status rg_arg_choice(const rg_args *args, const char *name, const char *const *names, int *out,
                        rg_err *err)
{
    const char *text;
    RG_TRY(need(args, name, &text, err));
    char known[256] = "";
    size_t used = 0;
    for (*out = 0; names[*out]; (*out)++) {
        if (strcmp(text, names[*out]) == 0)
            return RG_OK;
        if (used < sizeof known - 40)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%.30s", *out ? ", " : "",
                                     names[*out]);
    }
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "option --%s '%s' is not one of: %s", name, text,
                   known);
}

int rg_arg_count(const rg_args *args, const char *name)
{
    int count = 0;
    for (const given *g = args->values[index_of(args, name)]; g; g = g->next)
        count++;
    return count;
}

const char *rg_arg_nth(const rg_args *args, const char *name, int index)
{
    const given *g = args->values[index_of(args, name)];
    while (g && index-- > 0)
        g = g->next;
    return g ? g->value : NULL;
}

int rg_arg_operands(const rg_args *args)
{
    return args->operand_count;
}

const char *rg_arg_operand(const rg_args *args, int index)
{
    return index < args->operand_count ? args->operands[index] : NULL;
}

uint64_t rg_arg_seed(const rg_args *args)
{
    int64_t seed = 1;
    rg_arg_int(args, "seed", 0, INT64_MAX, &seed, NULL); /* checked by rg_arg_form */
    return (uint64_t)seed;
}

rg_status rg_arg_form(const rg_args *args, rg_form *out, rg_err *err)
{
    static const char *const names[] = {"text", "csv", "json", "html", NULL};
    int64_t seed;
    int form;
    RG_TRY(rg_arg_int(args, "seed", 0, INT64_MAX, &seed, err));
    RG_TRY(rg_arg_choice(args, "format", names, &form, err));
    *out = (rg_form)form;
    return RG_OK;
}

rg_status rg_arg_report(rg_arena *arena, const rg_args *args, int version, rg_report **out,
                        rg_err *err)
{
    rg_form form;
    RG_TRY(rg_arg_form(args, &form, err));
    *out = rg_report_new(arena, args->command->name, version, form, err);
    return *out ? RG_OK : RG_ERR_LIMIT;
}

rg_status rg_arg_write(const rg_args *args, rg_report *report, const char *csv_key, rg_err *err)
{
    return rg_report_write(report, rg_arg_text(args, "output"), csv_key, err);
}
