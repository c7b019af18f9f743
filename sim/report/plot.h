/* report/plot.h: figures through gnuplot templates.
 *
 * Reads core. A template plots/<name>.gp draws from variables and CSV files. Beside FIGURE.svg lie
 * FIGURE.<data>.csv and FIGURE.gp, the whole script, so that a user can change and redraw it. The
 * ending picks the terminal: .svg, .png, .pdf, .txt; without a path the figure goes to stdout as
 * text. The figure appears whole or not at all.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_REPORT_PLOT_H
#define RG_REPORT_PLOT_H

#include <stdbool.h>
#include <stdio.h>

#include "core/arena.h"

typedef struct rg_plot rg_plot;

/** A figure by template name; path NULL draws on the terminal. RG_ERR_USAGE for an ending that is
 * no figure's, RG_ERR_IO when the template is not found. */
rg_status rg_plot_new(rg_arena *arena, const char *template_name, const char *path, rg_plot **out,
                      rg_err *err);
/** Whether a path ends like a figure: .svg, .png, .pdf. */
bool rg_plot_is_figure(const char *path);
/** Size in pixels (characters / 10 on a terminal); the default is 1000 x 640. */
void rg_plot_size(rg_plot *plot, int width, int height);
/** Variables of the script: text is quoted, numbers are printed in full. */
void rg_plot_text(rg_plot *plot, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void rg_plot_number(rg_plot *plot, const char *name, double value);
/** A CSV file of the figure; the script knows it as <name>_csv. Write to *out, which the plot
 * closes. */
rg_status rg_plot_data(rg_plot *plot, const char *name, FILE **out, rg_err *err);
/** Write data and script, run gnuplot. RG_ERR_DEVICE when gnuplot is missing or fails; data and
 * script are kept then. */
rg_status rg_plot_write(rg_plot *plot, rg_err *err);

#endif
