/* hw/topo.c: the matrix of nvidia-smi topo -m. */
// SPDX-License-Identifier: Apache-2.0
#include "hw/topo.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/text.h"

enum { MOST_COLUMNS = 256, MOST_WORD = 32, MOST_BYTES = 1 << 20 };

typedef struct cursor {
    const char *path, *at, *line_start;
    int line;
} cursor;

typedef enum column { COLUMN_OTHER, COLUMN_DEVICE, COLUMN_NIC } column;

/* Terminals get the header underlined: escape sequences count as blanks. */
static void skip_blanks(cursor *c)
{
    for (;;) {
        if (*c->at == ' ' || *c->at == '\t' || *c->at == '\r') {
            c->at++;
        } else if (c->at[0] == '\x1b' && c->at[1] == '[') {
            c->at += 2;
            while (*c->at != '\0' && *c->at != '\n' && !(*c->at >= '@' && *c->at <= '~'))
                c->at++;
            c->at += *c->at != '\0' && *c->at != '\n';
        } else {
            return;
        }
    }
}

static bool next_word(cursor *c, char out[MOST_WORD], rg_pos *pos)
{
    skip_blanks(c);
    *pos = (rg_pos){c->path, c->line, (int)(c->at - c->line_start) + 1};
    size_t n = 0;
    while (*c->at != '\0' && strchr(" \t\r\n\x1b", *c->at) == NULL) {
        if (n < MOST_WORD - 1)
            out[n++] = *c->at;
        c->at++;
    }
    out[n] = '\0';
    return n > 0;
}

static bool next_line(cursor *c)
{
    c->at += strcspn(c->at, "\n");
    if (*c->at == '\0')
        return false;
    c->line_start = ++c->at;
    c->line++;
    return true;
}

/* "GPU12" -> 12; -1 for anything else. */
static int numbered(const char *word, const char *stem)
{
    const size_t n = strlen(stem);
    if (strncmp(word, stem, n) != 0 || word[n] < '0' || word[n] > '9')
        return -1;
    char *end;
    const long value = strtol(word + n, &end, 10);
    return *end == '\0' && value < 100000 ? (int)value : -1;
}

static rg_status way_of(const char *word, rg_pos pos, rg_topo_way *way, int *links, rg_err *err)
{
    static const struct {
        const char *name;
        rg_topo_way way;
    } names[] = {
        {"X", RG_WAY_SELF},          {"PIX", RG_WAY_ONE_SWITCH},    {"PXB", RG_WAY_SWITCHES},
        {"PHB", RG_WAY_HOST_BRIDGE}, {"NODE", RG_WAY_HOST_BRIDGES}, {"SYS", RG_WAY_SOCKETS}};
    *links = numbered(word, "NV");
    if (*links > 0) {
        *way = RG_WAY_NVLINK;
        return RG_OK;
    }
    *links = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i].name) == 0) {
            *way = names[i].way;
            return RG_OK;
        }
    return rg_fail(err, RG_ERR_INPUT, pos,
                   "'%s' is no connection; X, NV and a number, PIX, PXB, PHB, NODE or SYS", word);
}

/* The line that names the columns: "GPU0 GPU1 ... NIC0 ... CPU Affinity ...". */
static rg_status read_header(cursor *c, column columns[MOST_COLUMNS], int *count, rg_topo *out,
                             rg_err *err)
{
    char word[MOST_WORD] = "";
    rg_pos pos;
    do {
        cursor line = *c;
        *count = 0;
        out->devices = out->nics = 0;
        while (next_word(&line, word, &pos) && *count < MOST_COLUMNS && strcmp(word, "CPU") != 0) {
            column *k = &columns[(*count)++];
            *k = numbered(word, "GPU") >= 0                                   ? COLUMN_DEVICE
                 : numbered(word, "NIC") >= 0 || strncmp(word, "mlx", 3) == 0 ? COLUMN_NIC
                                                                              : COLUMN_OTHER;
            out->devices += *k == COLUMN_DEVICE;
            out->nics += *k == COLUMN_NIC;
        }
        if (out->devices > 0 && columns[0] == COLUMN_DEVICE)
            break;
        out->devices = 0;
    } while (next_line(c));
    if (out->devices == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){c->path, 1, 1},
                       "no line 'GPU0 GPU1 ...': this is not what 'nvidia-smi topo -m' prints");
    if (out->devices > RG_TOPO_MOST)
        return rg_fail(err, RG_ERR_LIMIT, (rg_pos){c->path, c->line, 1}, "more than %d devices",
                       RG_TOPO_MOST);
    return RG_OK;
}

static rg_status read_row(cursor *c, const column *columns, int count, int row, rg_topo *out,
                          rg_err *err)
{
    char word[MOST_WORD] = "";
    rg_pos pos;
    for (int i = 0, device = 0; i < count; i++) {
        if (columns[i] == COLUMN_OTHER)
            break;
        if (!next_word(c, word, &pos))
            return rg_fail(err, RG_ERR_INPUT, pos, "the row ends after %d of %d columns", i, count);
        rg_topo_way way;
        int links;
        RG_TRY(way_of(word, pos, &way, &links, err));
        if (columns[i] != COLUMN_DEVICE)
            continue;
        if ((way == RG_WAY_SELF) != (device == row))
            return rg_fail(err, RG_ERR_INPUT, pos, "'%s' where row GPU%d meets column GPU%d", word,
                           row, device);
        out->way[row][device] = way;
        out->links[row][device++] = links;
    }
    int64_t numa; /* behind the matrix: the row's processors, then its NUMA node */
    next_word(c, word, &pos);
    if (next_word(c, word, &pos) && rg_text_to_int(word, &numa) && numa >= 0 && numa < 1024)
        out->numa[row] = (int)numa;
    return RG_OK;
}

/* Rows that are there must agree; those that are not follow from the columns. */
static rg_status complete(const cursor *c, const int *row_line, rg_topo *out, rg_err *err)
{
    int rows = 0;
    for (int i = 0; i < out->devices; i++)
        rows += row_line[i] > 0;
    out->missing = out->devices - rows;
    if (out->missing > 1)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){c->path, c->line, 1},
                       "%d of %d rows are missing; one could be made up from the columns",
                       out->missing, out->devices);
    for (int i = 0; i < out->devices; i++)
        for (int k = 0; k < out->devices; k++) {
            if (row_line[i] == 0) {
                out->way[i][k] = i == k ? RG_WAY_SELF : out->way[k][i];
                out->links[i][k] = i == k ? 0 : out->links[k][i];
            } else if (row_line[k] > 0 &&
                       (out->way[i][k] != out->way[k][i] || out->links[i][k] != out->links[k][i])) {
                return rg_fail(err, RG_ERR_INPUT, (rg_pos){c->path, row_line[k], 1},
                               "GPU%d and GPU%d see each other differently", i, k);
            }
        }
    return RG_OK;
}

rg_status rg_topo_parse(const char *path, const char *text, rg_topo *out, rg_err *err)
{
    cursor c = {.path = path, .at = text, .line_start = text, .line = 1};
    column columns[MOST_COLUMNS];
    int row_line[RG_TOPO_MOST] = {0}; /* 0: not there */
    int count;
    char word[MOST_WORD] = "";
    rg_pos pos;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < RG_TOPO_MOST; i++)
        out->numa[i] = -1;
    RG_TRY(read_header(&c, columns, &count, out, err));
    while (next_line(&c)) {
        const int row = next_word(&c, word, &pos) ? numbered(word, "GPU") : -1;
        if (row < 0)
            continue; /* network cards, legend */
        if (row >= out->devices || row_line[row] > 0)
            return rg_fail(err, RG_ERR_INPUT, pos, "row '%s' %s", word,
                           row < out->devices ? "stands there twice" : "has no column");
        RG_TRY(read_row(&c, columns, count, row, out, err));
        row_line[row] = c.line;
    }
    return complete(&c, row_line, out, err);
}

rg_status rg_topo_load(rg_arena *arena, const char *path, rg_topo *out, rg_err *err)
{
    char *text;
    size_t length;
    RG_TRY(rg_file_read(arena, path, MOST_BYTES, &text, &length, err));
    return rg_topo_parse(path, text, out, err);
}

/* One PCIe switch, or a chain of them. NVLink hides the PCIe way, so such pairs join no group. */
static bool same_switch(const rg_topo *t, int i, int k)
{
    return t->way[i][k] == RG_WAY_ONE_SWITCH || t->way[i][k] == RG_WAY_SWITCHES;
}

static bool same_socket(const rg_topo *t, int i, int k)
{
    if (t->numa[i] >= 0 && t->numa[k] >= 0)
        return t->numa[i] == t->numa[k];
    return t->way[i][k] > RG_WAY_NVLINK && t->way[i][k] < RG_WAY_SOCKETS;
}

static int largest_group(const rg_topo *t, bool (*same)(const rg_topo *, int, int))
{
    int group[RG_TOPO_MOST], size[RG_TOPO_MOST] = {0}, most = 0;
    for (int i = 0; i < t->devices; i++) {
        group[i] = i;
        for (int k = 0; k < i && group[i] == i; k++)
            if (same(t, i, k))
                group[i] = group[k];
        size[group[i]]++;
        if (size[group[i]] > most)
            most = size[group[i]];
    }
    return most;
}

rg_topo_shape rg_topo_shape_of(const rg_topo *t)
{
    rg_topo_shape s = {0};
    for (int i = 0; i < t->devices; i++) {
        int links = 0, neighbours = 0;
        for (int k = 0; k < t->devices; k++) {
            links += t->links[i][k];
            neighbours += t->links[i][k] > 0;
        }
        s.most_links = links > s.most_links ? links : s.most_links;
        s.bridged += neighbours > 0 && neighbours < t->devices - 1;
    }
    s.all_pairs = t->devices > 1 ? t->links[0][1] : 0;
    for (int i = 0; i < t->devices; i++)
        for (int k = 0; k < t->devices; k++)
            if (i != k && t->links[i][k] != s.all_pairs)
                s.all_pairs = 0;
    s.switch_size = largest_group(t, same_switch);
    s.socket_size = largest_group(t, same_socket);
    return s;
}
