/* trace/run_reader.h: what the readers of run records share. Private to trace/.
 *
 * Reads trace/run.h, core/doc.h. Rows of delimited text with their lines, numbers in any locale,
 * units, and the builder that groups samples by (kernel, problem, dtype).
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TRACE_RUN_READER_H
#define RG_TRACE_RUN_READER_H

#include "core/doc.h"
#include "trace/run.h"

typedef struct rg_reader {
    rg_arena *arena;
    const char *path, *text;
    size_t length;
    const rg_run_options *options;
    rg_run *run;
    int *index; /* hash table over run->entries, -1 empty */
    int index_size;
    int refusals; /* values that are no measurement */
} rg_reader;

/* Builder. */
rg_status rg_reader_entry(rg_reader *r, const char *kernel, const char *problem, const char *dtype,
                          rg_pos pos, rg_run_entry **out, rg_err *err);
rg_status rg_reader_sample(rg_reader *r, rg_run_entry *entry, double cost, rg_err *err);
/** The file gives a value that is no measurement: the entry is unusable for good, whatever else it
 * holds, and a note names file and line. value is shown in quotes. */
rg_status rg_reader_refuse(rg_reader *r, rg_run_entry *entry, const char *what, const char *value,
                           rg_pos pos, rg_err *err);
rg_status rg_reader_note(rg_reader *r, rg_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Rows. */
typedef struct rg_row {
    int line;
    int count;
    const char **field; /* blanks around unquoted fields cut off */
} rg_row;
typedef struct rg_rows {
    rg_row *items;
    int count, capacity;
} rg_rows;
/** Every record of delimited text, quotes and line ends inside quotes respected; blank lines are
 * records with count 0. first_line: number of the first line of text. */
rg_status rg_rows_split(rg_arena *arena, const char *path, const char *text, size_t length,
                        char delimiter, int first_line, rg_rows *out, rg_err *err);
/** Column by any of the names (NULL-terminated; case and blanks ignored), -1. */
int rg_row_find(const rg_row *header, const char *const *names);
static inline const char *rg_row_get(const rg_row *row, int column)
{
    return column >= 0 && column < row->count ? row->field[column] : "";
}

/* Numbers in the locale of the file. */
typedef struct rg_locale {
    char decimal;           /* '.' or ',' */
    bool certain;           /* some value could only be read this way */
    int as_point, as_comma; /* values that could only be read one way */
} rg_locale;
/** Look at one value; call for every value of the file, then rg_locale_settle. */
void rg_locale_see(rg_locale *locale, const char *text);
rg_status rg_locale_settle(rg_locale *locale, rg_pos pos, rg_err *err);
/** The number, with group separators (comma or point, blank, no-break blank, apostrophe) taken out.
 * False for anything else: "n/a", "", "nan", "inf". */
bool rg_locale_number(const rg_locale *locale, const char *text, double *out);

/** Factor to SI of a time, rate, size or count unit as tools spell them ("us", "usecond", "Kbyte",
 * "cycle/nsecond", "GB/s", "TFLOPS", "%"); false when unknown. "" gives 1. */
bool rg_unit_factor(const char *unit, double *factor);
/** Factor if the unit is one of time; false otherwise. */
bool rg_unit_is_time(const char *unit, double *factor);
/** Factor and a tidy name if the unit is a rate of flops or bytes. */
bool rg_unit_is_rate(const char *unit, double *factor, const char **name);

bool rg_text_same(const char *a, const char *b);      /* case and blanks ignored */
bool rg_text_has(const char *text, const char *part); /* case ignored */

/* Scalars of JSON, where tools write numbers as strings too. NaN when absent, null or no number. */
double rg_json_number(rg_node *map, const char *key);
const char *rg_json_text(rg_node *map, const char *key); /* "" when absent or not a scalar */
rg_node *rg_json_child(rg_node *map, const char *key, rg_node_kind kind); /* NULL when other */

/* Readers. */
rg_status rg_run_read_probe(rg_reader *r, rg_node *root, rg_err *err);
rg_status rg_run_read_nvbench(rg_reader *r, rg_node *root, rg_err *err);
rg_status rg_run_read_gbench(rg_reader *r, rg_node *root, rg_err *err);
rg_status rg_run_read_pytest(rg_reader *r, rg_node *root, rg_err *err);
rg_status rg_run_read_hyperfine(rg_reader *r, rg_node *root, rg_err *err);
rg_status rg_run_read_nccl_json(rg_reader *r, rg_node *root, rg_err *err);
rg_status rg_run_read_vllm(rg_reader *r, rg_node *root, rg_err *err);
rg_status rg_run_read_kineto(rg_reader *r, rg_node *root, rg_err *err);
rg_status rg_run_read_nccl_log(rg_reader *r, rg_err *err);
rg_status rg_run_read_ncu(rg_reader *r, const rg_rows *rows, int header, rg_err *err);
rg_status rg_run_read_nsys(rg_reader *r, const rg_rows *rows, int header, rg_err *err);
rg_status rg_run_read_genai(rg_reader *r, const rg_rows *rows, int header, rg_err *err);
rg_status rg_run_read_rocprof(rg_reader *r, const rg_rows *rows, int header, rg_err *err);
rg_status rg_run_read_table(rg_reader *r, const rg_rows *rows, int header, rg_err *err);

#endif
