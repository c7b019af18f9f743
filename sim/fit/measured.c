/* fit/measured.c: measured operator times from a table, as operators that the models understand. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/measured.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/csv.h"
#include "core/rng.h"
#include "core/text.h"

enum { PAGE_TOKENS = 64, MLA_LATENT = 512, MLA_ROPE = 64, MLA_NOPE = 128, MLA_VALUE = 128 };

static const char *const kind_names[RG_MEASURED_KIND_COUNT + 1] = {
    "gemm",
    "context_attention",
    "generation_attention",
    "encoder_attention",
    "context_mla",
    "generation_mla",
    "mla_bmm",
    "moe",
    "scale_matrix",
    "computescale",
    "nccl",
    "custom_allreduce",
    NULL,
};

const char *rg_measured_kind_name(rg_measured_kind kind)
{
    return kind_names[kind];
}

rg_status rg_measured_kind_parse(const char *text, const char *path, rg_measured_kind *out,
                                 rg_err *err)
{
    char name[64];
    if (text) {
        snprintf(name, sizeof name, "%s", text);
    } else {
        const char *slash = strrchr(path, '/');
        const char *base = slash ? slash + 1 : path;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(base, "."), base);
    }
    for (int i = 0; kind_names[i]; i++)
        if (strcmp(kind_names[i], name) == 0) {
            *out = (rg_measured_kind)i;
            return RG_OK;
        }
    const char *near = rg_text_nearest(name, kind_names);
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                   "'%s' is no operator with measured tables; %s%s%s", name,
                   near ? "did you mean '" : "give --op gemm, context_attention, moe, ...",
                   near ? near : "", near ? "'?" : "");
}

const char *rg_skip_name(rg_skip skip)
{
    static const char *const names[RG_SKIP_COUNT] = {
        "none",          "listed outlier", "faster than the hardware allows",
        "not supported", "no valid time",
    };
    return names[skip];
}

/* A row while it is read: the table's columns by what they mean; -1 where a kind has none. */
typedef struct reader {
    rg_arena *arena;
    rg_csv *csv;
    rg_measured_kind kind;
    rg_err *err;
    bool *unknown; /* set when a word of the row is one that the models do not know */
    bool *foreign; /* set when that word is a format of ridge that no measured table has */
} reader;

static rg_status integer(const reader *in, const char *column, int64_t least, int64_t *out)
{
    int at;
    RG_TRY(rg_csv_column(in->csv, column, &at, in->err));
    RG_TRY(rg_csv_int(in->csv, at, out, in->err));
    if (*out < least)
        return rg_fail(in->err, RG_ERR_INPUT, rg_csv_pos(in->csv, at), "%s '%lld' is below %lld",
                       column, (long long)*out, (long long)least);
    return RG_OK;
}

static rg_status word(const reader *in, const char *column, const char **out)
{
    int at;
    RG_TRY(rg_csv_column(in->csv, column, &at, in->err));
    *out = rg_csv_text(in->csv, at);
    return RG_OK;
}

static const char *word_or(const reader *in, const char *column, const char *fallback)
{
    const int at = rg_csv_find(in->csv, column);
    return at < 0 ? fallback : rg_csv_text(in->csv, at);
}

static rg_pos place(const reader *in, const char *column)
{
    const int at = rg_csv_find(in->csv, column);
    return at < 0 ? RG_NOWHERE : rg_csv_pos(in->csv, at);
}

/* What a dtype column of these tables says about weights and products. */
typedef struct number_kind {
    const char *names[4];
    const char *format, *label;
    rg_dtype math;
} number_kind;

static const number_kind number_kinds[] = {
    {{"bfloat16", "bf16"}, "bf16", "bf16", RG_BF16},
    {{"float16", "fp16", "half"}, "fp16", "fp16", RG_FP16},
    {{"fp8"}, "fp8", "fp8", RG_FP8},
    {{"fp8_static"}, "fp8", "fp8_static", RG_FP8},
    {{"fp8_block"}, "fp8_block", "fp8_block", RG_FP8},
    {{"nvfp4"}, "nvfp4", "nvfp4", RG_FP4},
    {{"mxfp4", "w4a8_mxfp4_mxfp8"}, "mxfp4", "mxfp4", RG_FP8},
    {{"int8_wo"}, "int8_wo", "int8_wo", RG_BF16},
    {{"int4_wo"}, "int4_wo", "int4_wo", RG_BF16},
    {{"w4a16_mxfp4"}, "mxfp4_wo", "w4a16_mxfp4", RG_BF16},
    {{"w4afp8"}, "int4", "w4afp8", RG_FP8},
    {{"sq", "int8"}, "int8", "int8", RG_INT8},
};

static rg_status number_of(const reader *in, const char *column, const number_kind **out)
{
    const char *name;
    RG_TRY(word(in, column, &name));
    for (size_t i = 0; i < sizeof number_kinds / sizeof number_kinds[0]; i++)
        for (int j = 0; j < 4 && number_kinds[i].names[j]; j++)
            if (strcmp(number_kinds[i].names[j], name) == 0) {
                *out = &number_kinds[i];
                return RG_OK;
            }
    *in->unknown = true;
    rg_format format;
    *in->foreign = rg_format_parse(name, RG_NOWHERE, &format, NULL) == RG_OK;
    return rg_fail(in->err, RG_ERR_INPUT, place(in, column),
                   "%s '%s' is not known; known are bfloat16, float16, fp8, fp8_block, nvfp4, "
                   "int8_wo, int4_wo, sq, w4a16_mxfp4",
                   column, name);
}

static rg_status read_gemm(const reader *in, rg_measured_row *row)
{
    int64_t m, n, k;
    const number_kind *number;
    RG_TRY(integer(in, "m", 1, &m));
    RG_TRY(integer(in, "n", 1, &n));
    RG_TRY(integer(in, "k", 1, &k));
    RG_TRY(number_of(in, "dtype", &number));
    rg_format format;
    RG_TRY(rg_format_parse(number->format, RG_NOWHERE, &format, in->err));
    const rg_dtype act = number->math == RG_FP16 ? RG_FP16 : RG_BF16;
    row->op = rg_op_make_gemm("gemm", m, n, k, &format, number->math, act);
    row->dtype = number->label;
    return RG_OK;
}

static rg_status read_bmm(const reader *in, rg_measured_row *row)
{
    int64_t tokens, heads;
    const number_kind *number;
    const char *stage;
    RG_TRY(integer(in, "tokens", 1, &tokens));
    RG_TRY(integer(in, "heads", 1, &heads));
    RG_TRY(number_of(in, "dtype", &number));
    RG_TRY(word(in, "stage", &stage));
    const bool before = strstr(stage, "pre") != NULL;
    rg_format format;
    RG_TRY(rg_format_parse(number->math == RG_FP8 ? "fp8_block" : number->format, RG_NOWHERE,
                           &format, in->err));
    row->op = rg_op_make_bmm("mla_bmm", heads, tokens, before ? MLA_LATENT : MLA_NOPE,
                             before ? MLA_NOPE : MLA_LATENT, &format, number->math, RG_BF16);
    row->dtype = number->label;
    return RG_OK;
}

static rg_attention_library library_of(const char *kernel)
{
    return strstr(kernel, "flash") ? RG_ATTENTION_FLASH : RG_ATTENTION_TRTLLM;
}

static rg_status read_attention(const reader *in, rg_measured_row *row)
{
    const bool decode = in->kind == RG_MEASURED_GENERATION_ATTENTION;
    const bool encoder = in->kind == RG_MEASURED_ENCODER_ATTENTION;
    rg_op_attention a = {.causal = !encoder, .fused = true, .no_cache = encoder};
    int64_t length;
    const number_kind *q, *kv;
    RG_TRY(integer(in, "batch", 1, &a.batch));
    RG_TRY(integer(in, decode ? "kv_len" : "seq", 1, &length));
    RG_TRY(integer(in, "heads", 1, &a.heads));
    RG_TRY(integer(in, "head_dim", 1, &a.head_dim));
    RG_TRY(number_of(in, "q_dtype", &q));
    a.kv_heads = a.heads;
    kv = q;
    if (!encoder) {
        RG_TRY(integer(in, "kv_heads", 1, &a.kv_heads));
        RG_TRY(number_of(in, "kv_dtype", &kv));
        if (rg_csv_find(in->csv, "window") >= 0)
            RG_TRY(integer(in, "window", 0, &a.window));
        a.page_tokens = PAGE_TOKENS;
    }
    RG_TRY(rg_format_parse(kv->format, RG_NOWHERE, &a.kv, in->err));
    a.q_tokens = decode ? 1 : length;
    a.kv_tokens = a.kv_tokens_max = decode ? (double)length : 0.0;
    a.v_head_dim = a.head_dim;
    a.math = q->math;
    row->op = rg_op_make_attention(rg_measured_kind_name(in->kind),
                                   decode ? RG_OP_ATTN_DECODE : RG_OP_ATTN_PREFILL, &a);
    row->library = library_of(word_or(in, "kernel", ""));
    row->dtype =
        kv == q ? q->label : rg_arena_printf(in->arena, in->err, "%s/kv-%s", q->label, kv->label);
    return row->dtype ? RG_OK : RG_ERR_LIMIT;
}

static rg_status read_mla(const reader *in, rg_measured_row *row)
{
    const bool decode = in->kind == RG_MEASURED_GENERATION_MLA;
    rg_op_attention a = {.causal = true,
                         .fused = true,
                         .latent = MLA_LATENT,
                         .rope_dim = MLA_ROPE,
                         .head_dim = MLA_NOPE + MLA_ROPE,
                         .v_head_dim = MLA_VALUE,
                         .math = RG_BF16,
                         .page_tokens = PAGE_TOKENS};
    int64_t length;
    const number_kind *kv;
    RG_TRY(integer(in, "batch", 1, &a.batch));
    RG_TRY(integer(in, decode ? "kv_len" : "seq", 1, &length));
    RG_TRY(integer(in, "heads", 1, &a.heads));
    RG_TRY(number_of(in, "kv_dtype", &kv));
    RG_TRY(rg_format_parse(kv->format, RG_NOWHERE, &a.kv, in->err));
    a.kv_heads = a.heads;
    a.q_tokens = decode ? 1 : length;
    a.kv_tokens = a.kv_tokens_max = decode ? (double)length : 0.0;
    row->op = rg_op_make_attention(rg_measured_kind_name(in->kind),
                                   decode ? RG_OP_MLA_DECODE : RG_OP_MLA_PREFILL, &a);
    row->dtype = kv->math == RG_FP8 ? "bf16/kv-fp8" : "bf16";
    return RG_OK;
}

static rg_status read_moe(const reader *in, rg_measured_row *row)
{
    rg_op_moe s = {.act = RG_BF16};
    int64_t tp, ep;
    const number_kind *number;
    const char *distribution;
    RG_TRY(integer(in, "tokens", 1, &s.tokens));
    RG_TRY(integer(in, "hidden", 1, &s.hidden));
    RG_TRY(integer(in, "inter", 1, &s.inter));
    RG_TRY(integer(in, "topk", 1, &s.top_k));
    RG_TRY(integer(in, "experts", 1, &s.experts));
    RG_TRY(integer(in, "tp", 1, &tp));
    RG_TRY(integer(in, "ep", 1, &ep));
    RG_TRY(number_of(in, "dtype", &number));
    RG_TRY(word(in, "distribution", &distribution));
    static const char power_law[] = "power_law_";
    if (strncmp(distribution, power_law, strlen(power_law)) == 0) {
        if (!rg_text_to_real(distribution + strlen(power_law), &s.skew))
            return rg_fail(in->err, RG_ERR_INPUT, place(in, "distribution"),
                           "distribution '%s' has no exponent; write power_law_1.2", distribution);
    } else if (strcmp(distribution, "balanced") == 0) {
        s.dealt = true;
    } else if (strcmp(distribution, "uniform") != 0) {
        *in->unknown = true;
        return rg_fail(in->err, RG_ERR_INPUT, place(in, "distribution"),
                       "distribution '%s' is not known; known are balanced, uniform, power_law_A",
                       distribution);
    }
    s.inter = (s.inter + tp - 1) / tp;
    s.local_experts = (s.experts + ep - 1) / ep;
    s.matrices = strstr(word_or(in, "kernel", ""), "nongated") ? 2 : 3;
    RG_TRY(rg_format_parse(number->format, RG_NOWHERE, &s.weight, in->err));
    s.math = number->math;
    row->op = rg_op_make_moe("moe", &s);
    row->dtype = s.skew > 0.0 ? rg_arena_printf(in->arena, in->err, "%s, skewed", number->label)
                              : number->label;
    return row->dtype ? RG_OK : RG_ERR_LIMIT;
}

static rg_status read_stream(const reader *in, rg_measured_row *row)
{
    int64_t m, k;
    RG_TRY(integer(in, "m", 1, &m));
    RG_TRY(integer(in, "k", 1, &k));
    const double elements = (double)m * (double)k;
    const rg_op_stream s = {
        .read_bytes = 2.0 * elements, .write_bytes = elements, .rows = m, .kernels = 1};
    row->op = rg_op_make_stream("scale_matrix", &s);
    row->dtype = "bf16 to fp8";
    return RG_OK;
}

static rg_status read_collective(const reader *in, rg_measured_row *row)
{
    int64_t bytes;
    const char *name;
    RG_TRY(integer(in, "ranks", 2, &row->ranks));
    RG_TRY(integer(in, "bytes", 1, &bytes));
    RG_TRY(word(in, "dtype", &name));
    row->collective = "all_reduce_custom";
    if (in->kind == RG_MEASURED_NCCL) {
        RG_TRY(word(in, "op", &row->collective));
        row->collective = rg_arena_strdup(in->arena, row->collective, in->err);
    }
    row->dtype = rg_arena_printf(in->arena, in->err, "%s, %lld ranks", row->collective,
                                 (long long)row->ranks);
    row->bytes = (double)bytes;
    row->element_bytes = strstr(name, "int8") ? 1.0 : 2.0;
    row->size_class = bytes <= 65536 ? "bytes<=64K" : bytes <= 4194304 ? "bytes<=4M" : "bytes>4M";
    row->residency = "any";
    return row->collective && row->dtype ? RG_OK : RG_ERR_LIMIT;
}

static rg_status read_row(const reader *in, rg_measured_row *row)
{
    switch (in->kind) {
    case RG_MEASURED_GEMM:
        return read_gemm(in, row);
    case RG_MEASURED_CONTEXT_ATTENTION:
    case RG_MEASURED_GENERATION_ATTENTION:
    case RG_MEASURED_ENCODER_ATTENTION:
        return read_attention(in, row);
    case RG_MEASURED_CONTEXT_MLA:
    case RG_MEASURED_GENERATION_MLA:
        return read_mla(in, row);
    case RG_MEASURED_MLA_BMM:
        return read_bmm(in, row);
    case RG_MEASURED_MOE:
        return read_moe(in, row);
    case RG_MEASURED_SCALE_MATRIX:
    case RG_MEASURED_COMPUTESCALE:
        return read_stream(in, row);
    default:
        return read_collective(in, row);
    }
}

/* FNV-1a over the columns that make the shape, finished by splitmix64 so that any residue of it is
 * evenly spread. Types and kernels are left out: one shape falls on one side of a split. */
static uint64_t hash_shape(const rg_measured_table *table, const char **fields)
{
    static const char *const no_shape[] = {"time_us", "dtype", "q_dtype", "kv_dtype", "kernel"};
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < table->columns; i++) {
        bool shape = true;
        for (size_t j = 0; j < sizeof no_shape / sizeof no_shape[0]; j++)
            shape = shape && strcmp(table->column[i], no_shape[j]) != 0;
        for (const char *p = fields[i]; shape; p++) {
            hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
            if (!*p)
                break;
        }
    }
    return rg_rng_splitmix(&hash);
}

/* Texts that come again and again (types, kernels, small numbers) are kept once. */
static const char *keep(rg_arena *arena, const char *text, const char *last, rg_err *err)
{
    if (last && strcmp(last, text) == 0)
        return last;
    return rg_arena_strdup(arena, text, err);
}

static rg_status append(rg_arena *arena, rg_measured_table *table, size_t *capacity, rg_err *err)
{
    if (table->count < *capacity)
        return RG_OK;
    const size_t more = *capacity ? 2 * *capacity : 1024;
    rg_measured_row *rows = RG_NEW(arena, rg_measured_row, more, err);
    if (!rows)
        return RG_ERR_LIMIT;
    if (table->count)
        memcpy(rows, table->rows, table->count * sizeof *rows);
    table->rows = rows;
    *capacity = more;
    return RG_OK;
}

static rg_status load_rows(const reader *in, rg_measured_table *out)
{
    int time_at;
    RG_TRY(rg_csv_column(in->csv, "time_us", &time_at, in->err));
    size_t capacity = 0, unknown_rows = 0;
    rg_err first_unknown = {0};
    const char **last = NULL;
    for (;;) {
        bool more;
        RG_TRY(rg_csv_next(in->csv, &more, in->err));
        if (!more)
            break;
        RG_TRY(append(in->arena, out, &capacity, in->err));
        rg_measured_row *row = &out->rows[out->count];
        double time_us;
        RG_TRY(rg_csv_real(in->csv, time_at, &time_us, in->err));
        /* A table may hold types that ridge has no model of, beside others: those rows are counted
         * as not supported. A table of nothing but words that mean nothing is refused below. */
        *in->unknown = *in->foreign = false;
        const rg_status read = read_row(in, row);
        if (read != RG_OK && !*in->unknown)
            return read;
        if (read != RG_OK) {
            *row = (rg_measured_row){.dtype = "unknown", .residency = "any"};
            if (!*in->foreign)
                first_unknown = unknown_rows++ == 0 && in->err ? *in->err : first_unknown;
        }
        if (!row->collective)
            row->size_class = rg_kernel_size_class(&row->op);
        row->seconds = time_us * 1e-6;
        row->skip = read != RG_OK                        ? RG_SKIP_UNSUPPORTED
                    : time_us > 0.0 && isfinite(time_us) ? RG_SKIP_NONE
                                                         : RG_SKIP_INVALID;
        row->line = rg_csv_pos(in->csv, time_at).line;
        row->fields = RG_NEW(in->arena, const char *, out->columns, in->err);
        if (!row->fields)
            return RG_ERR_LIMIT;
        for (int i = 0; i < out->columns; i++) {
            row->fields[i] =
                keep(in->arena, rg_csv_text(in->csv, i), last ? last[i] : NULL, in->err);
            if (!row->fields[i])
                return RG_ERR_LIMIT;
        }
        row->shape_hash = hash_shape(out, row->fields);
        last = row->fields;
        out->count++;
    }
    if (unknown_rows < out->count || out->count == 0)
        return RG_OK;
    if (in->err)
        *in->err = first_unknown;
    return RG_ERR_INPUT;
}

rg_status rg_measured_load(rg_arena *arena, rg_measured_kind kind, const char *path,
                           rg_measured_table *out, rg_err *err)
{
    *out = (rg_measured_table){.kind = kind};
    out->path = rg_arena_strdup(arena, path, err);
    bool unknown = false, foreign = false;
    reader in = {
        .arena = arena, .kind = kind, .err = err, .unknown = &unknown, .foreign = &foreign};
    RG_TRY(rg_csv_open(arena, path, &in.csv, err));
    out->columns = rg_csv_columns(in.csv);
    out->column = RG_NEW(arena, const char *, out->columns, err);
    rg_status status = out->column && out->path ? RG_OK : RG_ERR_LIMIT;
    for (int i = 0; i < out->columns && status == RG_OK; i++) {
        out->column[i] = rg_arena_strdup(arena, rg_csv_name(in.csv, i), err);
        status = out->column[i] ? RG_OK : RG_ERR_LIMIT;
    }
    if (status == RG_OK)
        status = load_rows(&in, out);
    rg_csv_close(in.csv);
    if (status == RG_OK && out->count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 1, 1}, "the table has no rows");
    return status;
}

/* Whether "a=1;b=2" holds of a row, as far as its columns have those names. */
static bool point_matches(const rg_measured_table *table, const rg_measured_row *row,
                          const char *point)
{
    while (*point) {
        const size_t length = strcspn(point, ";"), name = strcspn(point, "=;");
        if (name < length)
            for (int i = 0; i < table->columns; i++) {
                const char *column = table->column[i], *field = row->fields[i];
                if (strlen(column) == name && strncmp(column, point, name) == 0 &&
                    (strlen(field) != length - name - 1 ||
                     strncmp(field, point + name + 1, length - name - 1) != 0))
                    return false;
            }
        point += length + (point[length] == ';');
    }
    return true;
}

rg_status rg_measured_mark_outliers(rg_arena *arena, rg_measured_table *table, const char *path,
                                    rg_err *err)
{
    rg_csv *csv;
    RG_TRY(rg_csv_open(arena, path, &csv, err));
    int op, time_us, point;
    rg_status status = rg_csv_column(csv, "op", &op, err);
    if (status == RG_OK)
        status = rg_csv_column(csv, "time_us", &time_us, err);
    if (status == RG_OK)
        status = rg_csv_column(csv, "point", &point, err);
    bool more = status == RG_OK;
    while (more && status == RG_OK) {
        status = rg_csv_next(csv, &more, err);
        double time;
        if (status != RG_OK || !more ||
            strcmp(rg_csv_text(csv, op), rg_measured_kind_name(table->kind)) != 0)
            continue;
        status = rg_csv_real(csv, time_us, &time, err);
        for (size_t i = 0; i < table->count && status == RG_OK; i++) {
            rg_measured_row *row = &table->rows[i];
            if (fabs(row->seconds * 1e6 - time) <= 1e-4 * time &&
                point_matches(table, row, rg_csv_text(csv, point)))
                row->skip = RG_SKIP_OUTLIER;
        }
    }
    rg_csv_close(csv);
    return status;
}

/* Where a repeated call finds its operands. Single products cycle through up to 5 copies of W;
 * everything else uses the same buffers again. */
static const char *residency_of(const rg_op *op, double l2_bytes)
{
    switch (op->kind) {
    case RG_OP_GEMM:
        if (op->u.gemm.batched)
            return rg_op_bytes(op).v < 2.0 * l2_bytes ? "l2" : "dram";
        return 5.0 * op->weight_bytes.v < l2_bytes ? "l2" : "dram";
    case RG_OP_ATTN_DECODE:
    case RG_OP_MLA_DECODE:
        return op->kv_read_bytes.v < 2.0 * l2_bytes ? "l2" : "dram";
    case RG_OP_MOE:
        return op->weight_bytes.v < l2_bytes ? "l2" : "dram";
    case RG_OP_STREAM:
        return rg_op_bytes(op).v < 2.0 * l2_bytes ? "l2" : "dram";
    default:
        return "any";
    }
}

/* Far enough above L2 for hits to be a small share. */
static const double surely_dram = 4.0;

rg_status rg_measured_judge(rg_measured_table *table, const rg_accel *accel,
                            const rg_kernel_device *ideal, rg_err *err)
{
    (void)err;
    const rg_memory_level *l2 = rg_accel_level(accel, "l2");
    const double l2_bytes = l2 && l2->capacity.known ? l2->capacity.value : 0.0;
    for (size_t i = 0; i < table->count; i++) {
        rg_measured_row *row = &table->rows[i];
        if (row->collective)
            continue;
        row->residency = residency_of(&row->op, l2_bytes);
        if (row->skip != RG_SKIP_NONE)
            continue;
        rg_kernel_time t;
        if (table->kind == RG_MEASURED_COMPUTESCALE ||
            rg_kernel_op_time(ideal, &row->op, &t, NULL) != RG_OK) {
            row->skip = RG_SKIP_UNSUPPORTED;
            continue;
        }
        /* Prefill into an 8-bit cache multiplies in 8 bit where it can: half the time is possible.
         */
        const rg_op_attention *a = &row->op.u.attention;
        const bool prefill =
            row->op.kind == RG_OP_ATTN_PREFILL || row->op.kind == RG_OP_MLA_PREFILL;
        const double speedup = prefill && a->kv.element_bits <= 8.0 ? 2.0 : 1.0;
        const bool far = rg_op_bytes(&row->op).v >= surely_dram * l2_bytes;
        if (row->seconds < t.compute.v / speedup || (far && row->seconds < t.memory.v))
            row->skip = RG_SKIP_IMPOSSIBLE;
    }
    return RG_OK;
}
