/* kernels/probe/main.c: ridge-probe: runs ridge's kernels on a GPU and writes what they took.
 *
 * Reads the rest of kernels/probe. Exit: 0 fine, 1 a check failed, 2 usage, 3 device or
 * environment, 77 no usable device and --skip. Results go to stdout or --output, all else to
 * stderr.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"
#include "command.h"
#include "record.h"
#include "core/text.h"

static const char usage[] =
    "usage: ridge-probe COMMAND [OPTIONS]\n"
    "\n"
    "Measures what ridge predicts: runs ridge's own CUDA kernels on this machine's GPU.\n"
    "\n"
    "  run [KERNEL...]       time kernels, count their traffic, write a run record (JSON)\n"
    "  check [KERNEL...]     compare kernels with their references in double precision (TAP)\n"
    "  calibrate             measure the figures of a hardware file, print them as YAML\n"
    "  list                  kernels and their problems\n"
    "  metrics [--chip C]    hardware counters that ridge reads, and the passes they take\n"
    "  evaluate FILE...      evaluate counter data images again (needs CUPTI, no GPU)\n"
    "  targets RECORD        a run record against what the kernels are to reach\n"
    "  env                   what this machine has and what is missing\n"
    "\n"
    "  --output FILE         where the record goes (default: stdout)\n"
    "  --csv DIR             also write rows in the columns of measured tables\n"
    "  --images DIR          keep counter data images there\n"
    "  --extent small|default|full\n"
    "                        how many problems of each kernel\n"
    "  --set KEY=VALUE       change a key of all problems (repeatable)\n"
    "  --variant NAME, --dtype NAME\n"
    "                        only problems of this variant or type\n"
    "  --warm                use the same buffers again and again (default: rotate, cold L2)\n"
    "  --samples N           samples for each problem (default 25)\n"
    "  --least-us T          least length of a sample in us (default 500)\n"
    "  --clock-ratio R       drop samples below R of the default clock (default 0.6)\n"
    "  --counters core|flops|link|no\n"
    "                        counters to read in a pass of their own (default core)\n"
    "  --device N            GPU number (default 0)\n"
    "  --cuda-lib DIR        folder of libcuda, libcupti and others (or RIDGE_CUDA_LIB)\n"
    "  --skip                exit 77 instead of 3 where there is no usable GPU\n"
    "  --chip NAME           chip for metrics, such as GH100\n"
    "  --base NAME           calibrate: hardware file that the figures are added to\n"
    "  --all                 metrics: every base metric of the chip\n"
    "  --help, --version\n";

/* An option: what it takes and where that goes. */
typedef enum option_kind {
    TAKES_TEXT,
    TAKES_INT,
    TAKES_REAL,
    TAKES_CHOICE,
    IS_FLAG,
    TAKES_SETTING
} option_kind;
typedef struct option {
    const char *name;
    option_kind kind;
    size_t offset;
    double least, most;
    const char *const *choices;
} option;

static const char *const extents[] = {"small", "default", "full", NULL};
static const char *const counter_choices[] = {"core", "flops", "link", "no", NULL};

#define AT(member) offsetof(rg_probe_options, member)
static const option options_known[] = {
    {"--output", TAKES_TEXT, AT(output), 0, 0, NULL},
    {"--csv", TAKES_TEXT, AT(csv), 0, 0, NULL},
    {"--images", TAKES_TEXT, AT(images), 0, 0, NULL},
    {"--extent", TAKES_CHOICE, AT(extent), 0, 0, extents},
    {"--set", TAKES_SETTING, 0, 0, 0, NULL},
    {"--variant", TAKES_TEXT, AT(variant), 0, 0, NULL},
    {"--dtype", TAKES_TEXT, AT(dtype), 0, 0, NULL},
    {"--warm", IS_FLAG, AT(warm), 0, 0, NULL},
    {"--samples", TAKES_INT, AT(measure.samples), 3, RG_MAX_SAMPLES, NULL},
    {"--least-us", TAKES_REAL, AT(measure.least_us), 0, 1e7, NULL},
    {"--clock-ratio", TAKES_REAL, AT(measure.clock_ratio), 0, 1, NULL},
    {"--counters", TAKES_CHOICE, AT(counters), 0, 0, counter_choices},
    {"--device", TAKES_INT, AT(device), 0, 1023, NULL},
    {"--cuda-lib", TAKES_TEXT, AT(cuda_lib), 0, 0, NULL},
    {"--skip", IS_FLAG, AT(skip), 0, 0, NULL},
    {"--chip", TAKES_TEXT, AT(chip), 0, 0, NULL},
    {"--base", TAKES_TEXT, AT(base), 0, 0, NULL},
    {"--all", IS_FLAG, AT(all), 0, 0, NULL},
};
enum { OPTION_COUNT = sizeof options_known / sizeof *options_known };

static rg_status take_number(const option *o, const char *text, double *out, rg_err *err)
{
    if (!rg_text_to_real(text, out) || *out < o->least || *out > o->most)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "option %s '%s': want a number from %g to %g",
                       o->name, text, o->least, o->most);
    return RG_OK;
}

static rg_status take_choice(const option *o, const char *text, int *out, rg_err *err)
{
    for (*out = 0; o->choices[*out]; ++*out)
        if (strcmp(o->choices[*out], text) == 0)
            return RG_OK;
    const char *near = rg_text_nearest(text, o->choices);
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "option %s '%s' is none of %s, ...%s%s%s",
                   o->name, text, o->choices[0], near ? "; did you mean '" : "", near ? near : "",
                   near ? "'?" : "");
}

static rg_status take_setting(rg_probe_options *o, char *text, rg_err *err)
{
    char *equals = strchr(text, '=');
    int64_t value = 0;
    if (!equals || !rg_text_to_int(equals + 1, &value))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "option --set '%s': want KEY=VALUE with a whole number, as in batch=64",
                       text);
    if (o->setting_count == RG_PROBLEM_KEYS)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "more than %d --set", RG_PROBLEM_KEYS);
    *equals = 0;
    o->settings[o->setting_count].name = text;
    o->settings[o->setting_count++].value = value;
    return RG_OK;
}

static rg_status find_option(const char *name, const option **out, rg_err *err)
{
    const char *names[OPTION_COUNT + 1] = {NULL};
    for (int i = 0; i < OPTION_COUNT; i++) {
        *out = &options_known[i];
        names[i] = options_known[i].name;
        if (strcmp(name, names[i]) == 0)
            return RG_OK;
    }
    const char *near = rg_text_nearest(name, names);
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "unknown option '%s'%s%s%s", name,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static rg_status parse_option(rg_probe_options *o, int argc, char **argv, int *i, rg_err *err)
{
    const option *known = NULL;
    double number = 0;
    RG_TRY(find_option(argv[*i], &known, err));
    void *const to = (char *)o + known->offset;
    if (known->kind == IS_FLAG) {
        *(bool *)to = true;
        return RG_OK;
    }
    if (*i + 1 >= argc)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "option '%s' needs a value", argv[*i]);
    char *value = argv[++*i];
    switch (known->kind) {
    case TAKES_INT:
        RG_TRY(take_number(known, value, &number, err));
        *(int *)to = (int)number;
        return RG_OK;
    case TAKES_REAL:
        return take_number(known, value, to, err);
    case TAKES_CHOICE:
        return take_choice(known, value, to, err);
    case TAKES_SETTING:
        return take_setting(o, value, err);
    default:
        *(const char **)to = value;
        return RG_OK;
    }
}

static rg_status parse(rg_probe_options *o, int argc, char **argv, rg_err *err)
{
    *o = (rg_probe_options){.extent = RG_EXTENT_DEFAULT,
                            .cuda_lib = getenv("RIDGE_CUDA_LIB"),
                            .measure = {.samples = 25, .least_us = 500, .clock_ratio = 0.6}};
    for (int i = 2; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0)
            RG_TRY(parse_option(o, argc, argv, &i, err));
        else if (o->operand_count == RG_PROBE_OPERANDS)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "more than %d names", RG_PROBE_OPERANDS);
        else
            o->operands[o->operand_count++] = argv[i];
    }
    return RG_OK;
}

static const struct {
    const char *name;
    rg_status (*run)(rg_arena *arena, const rg_probe_options *options, rg_err *err);
    bool kernels; /* operands are kernels */
} commands[] = {
    {"run", rg_probe_run, true},
    {"check", rg_probe_check, true},
    {"calibrate", rg_probe_calibrate, false},
    {"list", rg_probe_list, true},
    {"metrics", rg_probe_metrics, false},
    {"evaluate", rg_probe_evaluate, false},
    {"targets", rg_probe_targets, false},
    {"env", rg_probe_env, false},
};

static rg_status check_kernels(const rg_probe_options *o, rg_err *err)
{
    const char *names[64];
    int count = 0;
    for (const rg_family *const *family = rg_families; *family; family++)
        names[count++] = (*family)->name;
    names[count] = NULL;
    for (int i = 0; i < o->operand_count; i++)
        if (!rg_family_find(o->operands[i])) {
            const char *near = rg_text_nearest(o->operands[i], names);
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "no kernel '%s'%s%s%s; `ridge-probe list` shows them", o->operands[i],
                           near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        }
    return RG_OK;
}

static rg_status dispatch(rg_arena *arena, int argc, char **argv, rg_probe_options *o, rg_err *err)
{
    const size_t count = sizeof commands / sizeof *commands;
    const char *names[sizeof commands / sizeof *commands + 1] = {NULL};
    for (size_t c = 0; c < count; c++) {
        names[c] = commands[c].name;
        if (strcmp(argv[1], commands[c].name) != 0)
            continue;
        RG_TRY(parse(o, argc, argv, err));
        char line[1024] = "ridge-probe";
        for (int i = 1; i < argc; i++)
            snprintf(line + strlen(line), sizeof line - strlen(line), " %s", argv[i]);
        o->command_line = rg_arena_strdup(arena, line, err);
        if (o->cuda_lib) /* cuBLASLt and NCCL are opened deep inside, and look there too */
            setenv("RIDGE_CUDA_LIB", o->cuda_lib, 1);
        if (commands[c].kernels)
            RG_TRY(check_kernels(o, err));
        return commands[c].run(arena, o, err);
    }
    const char *near = rg_text_nearest(argv[1], names);
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                   "unknown command '%s'%s%s%s; see ridge-probe --help", argv[1],
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs(usage, stderr);
        return 2;
    }
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[1], "help") == 0) {
            fputs(usage, stdout);
            return 0;
        }
    if (strcmp(argv[1], "--version") == 0) {
        puts("ridge-probe " RG_VERSION);
        return 0;
    }
    rg_err err = {0};
    rg_probe_options options = {0};
    rg_arena *arena = rg_arena_new(4096);
    const rg_status status = arena ? dispatch(arena, argc, argv, &options, &err) : RG_ERR_LIMIT;
    rg_arena_free(arena);
    if (status == RG_OK)
        return 0;
    char text[RG_ERR_TEXT_SIZE + 300];
    rg_err_format(&err, text, (int)sizeof text);
    if (status != RG_ERR_NO || err.text[0])
        fprintf(stderr, "ridge-probe: %s\n", text);
    if (status == RG_ERR_DEVICE && options.skip) {
        fputs("ridge-probe: skipped\n", stderr);
        return 77;
    }
    return rg_status_exit_code(status);
}
