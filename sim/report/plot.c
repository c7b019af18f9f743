// SPDX-License-Identifier: Apache-2.0
#include "report/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "core/find.h"
#include "core/text.h"

enum { MAX_DATA = 8, SCRIPT_CAP = 1 << 20 };

extern char **environ;

typedef struct dataset {
    const char *name, *path;
    rg_out_file file;
} dataset;

typedef struct setting {
    struct setting *next;
    const char *line;
} setting;

struct rg_plot {
    rg_arena *arena;
    const char *path, *stem, *terminal, *template_text;
    char folder[64]; /* temporary, for figures on the terminal */
    int width, height;
    dataset data[MAX_DATA];
    int data_count;
    setting *first, *last;
    bool failed;
};

static const struct {
    const char *ending, *terminal;
} terminals[] = {
    {".svg", "svg enhanced size %d,%d fontscale 1.3 font 'Helvetica,11' background 'white'"},
    {".png", "pngcairo enhanced size %d,%d font 'DejaVu Sans,11' background 'white'"},
    {".pdf", "pdfcairo enhanced size %d.0/100,%d.0/100 font 'DejaVu Sans,10'"},
    {".txt", "dumb noenhanced size %d/10,%d/20"},
};

bool rg_plot_is_figure(const char *path)
{
    return rg_text_ends_with(path, ".svg") || rg_text_ends_with(path, ".png") ||
           rg_text_ends_with(path, ".pdf");
}

/* Leftovers of a figure that was never written, and the folder of one drawn on the terminal. */
static void release(void *object)
{
    rg_plot *plot = object;
    for (int i = 0; i < plot->data_count; i++) {
        rg_out_abandon(&plot->data[i].file);
        if (plot->folder[0])
            unlink(plot->data[i].path);
    }
    if (plot->folder[0]) {
        char script[80];
        snprintf(script, sizeof script, "%s/plot.gp", plot->folder);
        unlink(script);
        rmdir(plot->folder);
    }
}

rg_status rg_plot_new(rg_arena *arena, const char *template_name, const char *path, rg_plot **out,
                      rg_err *err)
{
    rg_plot *plot = RG_NEW(arena, rg_plot, 1, err);
    if (!plot)
        return RG_ERR_LIMIT;
    *out = plot;
    plot->arena = arena;
    plot->path = path;
    plot->width = 1000;
    plot->height = 640;
    RG_TRY(rg_arena_defer(arena, release, plot, err));
    if (path) {
        for (size_t i = 0; i < sizeof terminals / sizeof terminals[0]; i++)
            if (rg_text_ends_with(path, terminals[i].ending))
                plot->terminal = terminals[i].terminal;
        if (!plot->terminal)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "figure '%s' should end in .svg, .png, .pdf or .txt", path);
        plot->stem = rg_arena_copy(arena, path, strlen(path) - 4, err);
    } else {
        plot->terminal = terminals[3].terminal;
        snprintf(plot->folder, sizeof plot->folder, "/tmp/ridge-plot-XXXXXX");
        if (!mkdtemp(plot->folder)) {
            plot->folder[0] = 0;
            return rg_fail(err, RG_ERR_IO, (rg_pos){.file = "/tmp"}, "cannot be written: %s",
                           strerror(errno));
        }
        plot->stem = rg_arena_printf(arena, err, "%s/plot", plot->folder);
    }
    if (!plot->stem)
        return RG_ERR_LIMIT;
    const char *name = rg_arena_printf(arena, err, "%s.gp", template_name), *file;
    if (!name)
        return RG_ERR_LIMIT;
    RG_TRY(rg_data_file(arena, "plots", name, &file, err));
    char *text;
    size_t length;
    RG_TRY(rg_file_read(arena, file, SCRIPT_CAP, &text, &length, err));
    plot->template_text = text;
    return RG_OK;
}

void rg_plot_size(rg_plot *plot, int width, int height)
{
    plot->width = width;
    plot->height = height;
}

static void add_line(rg_plot *plot, const char *line)
{
    setting *s = RG_NEW(plot->arena, setting, 1, NULL);
    if (!s || !line) {
        plot->failed = true;
        return;
    }
    s->line = line;
    if (plot->last)
        plot->last->next = s;
    else
        plot->first = s;
    plot->last = s;
}

void rg_plot_text(rg_plot *plot, const char *name, const char *format, ...)
{
    char text[1024], quoted[2100];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t used = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            quoted[used++] = '\'';
        quoted[used++] = *c == '\n' ? ' ' : *c;
    }
    quoted[used] = 0;
    add_line(plot, rg_arena_printf(plot->arena, NULL, "%s = '%s'", name, quoted));
}

void rg_plot_number(rg_plot *plot, const char *name, double value)
{
    add_line(plot, rg_arena_printf(plot->arena, NULL, "%s = %.15g", name, value));
}

rg_status rg_plot_data(rg_plot *plot, const char *name, FILE **out, rg_err *err)
{
    if (plot->data_count == MAX_DATA)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "more than %d data files in one figure",
                       MAX_DATA);
    dataset *data = &plot->data[plot->data_count];
    data->name = rg_arena_strdup(plot->arena, name, err);
    data->path = rg_arena_printf(plot->arena, err, "%s.%s.csv", plot->stem, name);
    if (!data->name || !data->path)
        return RG_ERR_LIMIT;
    RG_TRY(rg_out_open(&data->file, data->path, err));
    plot->data_count++;
    *out = data->file.stream;
    return RG_OK;
}

/* The script names its files without folder, so that figure, data and script move together. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static rg_status write_script(const rg_plot *plot, const char *script, rg_err *err)
{
    rg_out_file file;
    RG_TRY(rg_out_open(&file, script, err));
    FILE *out = file.stream;
    fprintf(out, "# drawn by ridge %s; redraw with: gnuplot %s\nset terminal ", RG_VERSION,
            base_name(script));
    char terminal[160];
    /* The formats above take two integers. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(terminal, sizeof terminal, plot->terminal, plot->width, plot->height);
#pragma GCC diagnostic pop
    fprintf(out, "%s\n", terminal);
    if (plot->path)
        fprintf(out, "set output '%s'\n", base_name(plot->path));
    fputs("set encoding utf8\nset datafile separator ','\n", out);
    for (int i = 0; i < plot->data_count; i++)
        fprintf(out, "%s_csv = '%s'\n", plot->data[i].name, base_name(plot->data[i].path));
    for (const setting *s = plot->first; s; s = s->next)
        fprintf(out, "%s\n", s->line);
    fputs(plot->template_text, out);
    return rg_out_commit(&file, err);
}

/* Run gnuplot in the figure's folder on the script. */
static rg_status run_gnuplot(const rg_plot *plot, const char *script, rg_err *err)
{
    char folder[4096];
    const char *base = base_name(script);
    snprintf(folder, sizeof folder, "%.*s", base == script ? 1 : (int)(base - script),
             base == script ? "." : script);
    static char program[] = "gnuplot";
    char name[4096];
    snprintf(name, sizeof name, "%s", base);
    char *argv[] = {program, name, NULL};
    fflush(stdout);
    const pid_t child = fork();
    if (child < 0)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "gnuplot cannot be run: %s",
                       strerror(errno));
    if (child == 0) {
        if (chdir(folder) == 0)
            execvp(program, argv);
        _exit(127);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return RG_OK;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "gnuplot is not installed; install the package gnuplot-nox%s%s",
                       plot->path ? ", then run: gnuplot " : "", plot->path ? script : "");
    return rg_fail(err, RG_ERR_DEVICE, (rg_pos){.file = script}, "gnuplot failed on this script");
}

rg_status rg_plot_write(rg_plot *plot, rg_err *err)
{
    if (plot->failed)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "the figure is too large for memory");
    for (int i = 0; i < plot->data_count; i++)
        RG_TRY(rg_out_commit(&plot->data[i].file, err));
    const char *script = rg_arena_printf(plot->arena, err, "%s.gp", plot->stem);
    if (!script)
        return RG_ERR_LIMIT;
    RG_TRY(write_script(plot, script, err));
    return run_gnuplot(plot, script, err);
}
