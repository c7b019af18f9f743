/* kernels/probe/main.c: ridge-probe: runs ridge's kernels on a GPU and writes what they took.
 *
 * Reads the rest of kernels/probe. Exit: 0 fine, 1 a check failed, 2 usage, 3 device or
 * environment, 77 no usable device and --skip. Results go to stdout or --output, all else to
 * stderr.
 */
// SPDX-License-Identifier: Apache-2.0
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
    "  --clock-ratio R       drop samples below R of the default clock (default 0.75)\n"
    "  --counters core|flops|link|no\n"
    "                        counters to read in a pass of their own (default core)\n"
    "  --device N            GPU number (default 0)\n"
    "  --cuda-lib DIR        folder of libcuda, libcupti and others (or RIDGE_CUDA_LIB)\n"
    "  --skip                exit 77 instead of 3 where there is no usable GPU\n"
    "  --chip NAME           chip for metrics, such as GH100\n"
    "  --all                 metrics: every base metric of the chip\n"
    "  --help, --version\n";

static rg_status take_value(const rg_probe_options *o, int argc, char **argv, int *i,
                            const char **out, rg_err *err)
{
    (void)o;
    if (*i + 1 >= argc)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "option '%s' needs a value", argv[*i]);
    *out = argv[++*i];
    return RG_OK;
}

static rg_status take_number(const char *name, const char *text, double least, double most,
                             double *out, rg_err *err)
{
    if (!rg_text_to_real(text, out) || *out < least || *out > most)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "option %s '%s': want a number from %g to %g",
                       name, text, least, most);
    return RG_OK;
}

static rg_status take_choice(const char *name, const char *text, const char *const *names, int *out,
                             rg_err *err)
{
    for (*out = 0; names[*out]; ++*out)
        if (strcmp(names[*out], text) == 0)
            return RG_OK;
    const char *near = rg_text_nearest(text, names);
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "option %s '%s' is none of %s, ...%s%s%s", name,
                   text, names[0], near ? "; did you mean '" : "", near ? near : "",
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

static rg_status parse_option(rg_probe_options *o, int argc, char **argv, int *i, rg_err *err)
{
    static const char *const names[] = {
        "--output",   "--csv",     "--images",   "--extent",      "--set",      "--variant",
        "--dtype",    "--samples", "--least-us", "--clock-ratio", "--counters", "--device",
        "--cuda-lib", "--chip",    "--warm",     "--skip",        "--all",      NULL};
    static const char *const extents[] = {"small", "default", "full", NULL};
    static const char *const sets[] = {"core", "flops", "link", "no", NULL};
    const char *value = NULL, *name = argv[*i];
    double number = 0;
    int known = 0, choice = 0;
    while (names[known] && strcmp(names[known], name) != 0)
        known++;
    if (!names[known]) {
        const char *near = rg_text_nearest(name, names);
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "unknown option '%s'%s%s%s", name,
                       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    if (known < 14)
        RG_TRY(take_value(o, argc, argv, i, &value, err));
    switch (known) {
    case 0:
        o->output = value;
        return RG_OK;
    case 1:
        o->csv = value;
        return RG_OK;
    case 2:
        o->images = value;
        return RG_OK;
    case 3:
        RG_TRY(take_choice(name, value, extents, &choice, err));
        o->extent = (rg_extent)choice;
        return RG_OK;
    case 4:
        return take_setting(o, argv[*i], err);
    case 5:
        o->variant = value;
        return RG_OK;
    case 6:
        o->dtype = value;
        return RG_OK;
    case 7:
        RG_TRY(take_number(name, value, 3, RG_MAX_SAMPLES, &number, err));
        o->measure.samples = (int)number;
        return RG_OK;
    case 8:
        return take_number(name, value, 0, 1e7, &o->measure.least_us, err);
    case 9:
        return take_number(name, value, 0, 1, &o->measure.clock_ratio, err);
    case 10:
        RG_TRY(take_choice(name, value, sets, &choice, err));
        o->counters = choice < RG_SET_COUNT;
        o->metric_set = (rg_metric_set)(choice < RG_SET_COUNT ? choice : 0);
        return RG_OK;
    case 11:
        RG_TRY(take_number(name, value, 0, 1023, &number, err));
        o->device = (int)number;
        return RG_OK;
    case 12:
        o->cuda_lib = value;
        return RG_OK;
    case 13:
        o->chip = value;
        return RG_OK;
    case 14:
        o->cold = false;
        return RG_OK;
    case 15:
        o->skip = true;
        return RG_OK;
    default:
        o->all = true;
        return RG_OK;
    }
}

static rg_status parse(rg_probe_options *o, int argc, char **argv, rg_err *err)
{
    *o = (rg_probe_options){.extent = RG_EXTENT_DEFAULT,
                            .cold = true,
                            .counters = true,
                            .cuda_lib = getenv("RIDGE_CUDA_LIB"),
                            .measure = {.samples = 25, .least_us = 500, .clock_ratio = 0.75}};
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
