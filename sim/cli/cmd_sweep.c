/* cli/cmd_sweep.c: a what-if grid over any settings, on all cores, resumable, divisible. */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/args.h"
#include "core/text.h"
#include "plan/sweep.h"

typedef struct sweep_job {
    rg_sweep grid;
    rg_sweep_run run;
    const char *header;
    FILE *rows; /* without an output file: where rows are kept until the end */
} sweep_job;

/* "--shard I/N", else the rank and size that an MPI launcher gives each of its processes. */
static rg_status choose_shard(const rg_args *args, rg_sweep_run *run, rg_err *err)
{
    static const char *const launchers[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                               {"PMI_RANK", "PMI_SIZE"}};
    run->shard = 0;
    run->shards = 1;
    const char *text = rg_arg_text(args, "shard");
    if (text) {
        char left[32];
        const size_t length = strcspn(text, "/");
        if (text[length] == '/' && length < sizeof left) {
            memcpy(left, text, length);
            left[length] = 0;
            if (rg_text_to_int(left, &run->shard) &&
                rg_text_to_int(text + length + 1, &run->shards) && run->shard >= 0 &&
                run->shard < run->shards && run->shards <= 100000)
                return RG_OK;
        }
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "option --shard '%s' is not I/N with 0 <= I < N, as in 0/4", text);
    }
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const char *rank = getenv(launchers[i][0]), *size = getenv(launchers[i][1]);
        if (rank && size && rg_text_to_int(rank, &run->shard) && rg_text_to_int(size, &run->shards))
            return RG_OK;
    }
    return RG_OK;
}

static void show_progress(void *context, int64_t done, int64_t all)
{
    (void)context;
    fprintf(stderr, "\r%lld of %lld cells", (long long)done, (long long)all);
    if (done == all)
        fputc('\n', stderr);
}

static void keep_row(void *context, const char *row)
{
    fprintf(((sweep_job *)context)->rows, "%s\n", row);
}

static rg_status run_to_stdout(rg_arena *arena, sweep_job *job, rg_err *err)
{
    bool complete;
    job->rows = tmpfile();
    if (!job->rows)
        return rg_fail(err, RG_ERR_IO, RG_NOWHERE, "no temporary file can be made");
    job->run.sink = keep_row;
    const rg_status status = rg_sweep_execute(arena, &job->grid, &job->run, &complete, err);
    if (status == RG_OK) {
        char buffer[65536];
        size_t n;
        printf("%s\n", job->header);
        rewind(job->rows);
        while ((n = fread(buffer, 1, sizeof buffer, job->rows)) > 0)
            fwrite(buffer, 1, n, stdout);
    }
    fclose(job->rows);
    return status;
}

static rg_status run_to_file(rg_arena *arena, sweep_job *job, bool quiet, rg_err *err)
{
    bool complete;
    RG_TRY(rg_sweep_execute(arena, &job->grid, &job->run, &complete, err));
    if (!quiet && complete)
        fprintf(stderr, "%s: %lld cells\n", job->run.output, (long long)job->grid.cells);
    else if (!quiet)
        fprintf(stderr, "shard %lld of %lld is done; the output comes when all are\n",
                (long long)job->run.shard, (long long)job->run.shards);
    return RG_OK;
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    sweep_job *job = RG_NEW(arena, sweep_job, 1, err);
    if (!job)
        return RG_ERR_LIMIT;
    rg_form form;
    RG_TRY(rg_arg_form(args, &form, err));
    if (form != RG_FORM_CSV && rg_arg_given(args, "format"))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "a sweep is a table: --format csv");
    RG_TRY(rg_sweep_load(arena, rg_arg_operand(args, 0), &job->grid, err));
    RG_TRY(choose_shard(args, &job->run, err));
    job->run.output = rg_arg_text(args, "output");
    job->run.context = job;
    if (job->run.shards > 1 && !job->run.output)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "shards meet in a file; add --output FILE");
    const bool quiet = rg_arg_flag(args, "quiet");
    if (!quiet && isatty(2))
        job->run.progress = show_progress;
    job->header = rg_sweep_header(arena, &job->grid, err);
    if (!job->header)
        return RG_ERR_LIMIT;
    return job->run.output ? run_to_file(arena, job, quiet, err) : run_to_stdout(arena, job, err);
}

static const rg_option options[] = {
    {"shard", 0, "I/N", NULL, "do part I of N, as one task of a job array; I from 0", false},
    {NULL, 0, NULL, NULL, NULL, false},
};

extern const rg_command rg_cmd_sweep;
const rg_command rg_cmd_sweep = {
    .name = "sweep",
    .group = "answer",
    .summary = "a what-if grid over any field of hardware, model, engine or load",
    .operands = "GRID.yaml",
    .least_operands = 1,
    .most_operands = 1,
    .description =
        "A sweep file begins with 'kind: sweep'.\n"
        "The grid names settings: the options of 'ridge estimate' without dashes, and what-if "
        "paths\n"
        "such as hw.memory.hbm.bandwidth with values like x1.5 or '6 TB/s'. Under 'fixed' stand\n"
        "single values, under 'grid' lists. Each cell is one row of CSV; a cell that cannot be is "
        "a\n"
        "row that says why. A file begins with a line '#', by which the same command sees that it "
        "is\n"
        "done: pandas.read_csv takes comment='#'.\n"
        "\n"
        "With --output, finished cells are kept in a journal beside the file: after a kill the "
        "same\n"
        "command goes on where it stopped. --shard I/N, or 'mpirun -n N ridge sweep ...', divides "
        "the\n"
        "cells among processes that share the folder; whoever ends last writes the output, with "
        "the\n"
        "same bytes as one process would.",
    .examples = "  ridge sweep examples/53-next-generation.yaml -o grid.csv\n"
                "  mpirun -n 4 ridge sweep grid.yaml -o grid.csv",
    .options = options,
    .run = run,
};
