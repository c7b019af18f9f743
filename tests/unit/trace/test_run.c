/* Run records: each tool's file gives the figures that stand in it, in SI, and nothing becomes 0.
 */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/file.h"
#include "trace/run.h"
#include "trace/run_reader.h"

static rg_arena *arena;
static rg_err err;

static int setup(void **state)
{
    (void)state;
    arena = rg_arena_new(256);
    err = (rg_err){0};
    return arena == NULL;
}

static int teardown(void **state)
{
    (void)state;
    rg_arena_free(arena);
    return 0;
}

static rg_run *load(const char *name)
{
    rg_run *run = NULL;
    char path[256];
    snprintf(path, sizeof path, "tests/fuzz/corpus/%s", name);
    assert_ok(rg_run_load(arena, path, NULL, &run, &err));
    return run;
}

static rg_run *parse(const char *text, const char *unit)
{
    rg_run *run = NULL;
    const rg_run_options options = {unit};
    assert_ok(rg_run_parse(arena, "inline", text, strlen(text), &options, &run, &err));
    return run;
}

static const char *refuse(const char *text)
{
    static char message[RG_ERR_TEXT_SIZE + 300];
    rg_run *run;
    assert_int_equal(rg_run_parse(arena, "inline", text, strlen(text), NULL, &run, &err),
                     RG_ERR_INPUT);
    rg_err_format(&err, message, sizeof message);
    return message;
}

static const rg_run_entry *entry(const rg_run *run, const char *kernel, const char *problem)
{
    const rg_run_entry *e = rg_run_find(run, kernel, problem, "");
    if (e == NULL)
        print_error("no entry '%s' '%s'\n", kernel, problem);
    assert_non_null(e);
    return e;
}

static void probe_record_keeps_problem_samples_and_resources(void **state)
{
    (void)state;
    const rg_run *run = load("probe/two_kernels.json");
    assert_string_equal(run->device, "NVIDIA H200");
    assert_string_equal(run->clocks, "unlocked");
    assert_string_equal(run->ecc, "on");
    const rg_run_entry *kv = entry(run, "kv_read", "batch=64 context=4096 page=16");
    assert_int_equal(kv->sample_count, 10);
    assert_close(rg_run_cost(arena, kv, &err), 250.1e-6, 1e-12); /* (250.1 + 250.1) / 2 */
    assert_close(kv->clock_hz, 1.755e9, 1e-12);
    assert_close(kv->registers, 72, 0);
    assert_null(kv->throttled); /* "none" */
    const rg_run_entry *gemm = entry(run, "gemm", "m=8192 n=8192 k=8192");
    assert_close(gemm->median, 1390.5e-6, 1e-12);
    assert_close(gemm->count, 40, 0);
    assert_non_null(entry(run, "static_only", "")->unusable);
}

static void skipped_probe_record_says_why(void **state)
{
    (void)state;
    const rg_run *run = load("probe/skipped.json");
    assert_non_null(run->skipped);
    assert_int_equal(run->count, 0);
}

static void nvbench_values_as_strings_and_as_numbers(void **state)
{
    (void)state;
    const rg_run *run = load("nvbench/v1_strings.json");
    const rg_run_entry *e = entry(run, "copy", "T=I32 Elements=1048576");
    assert_close(e->mean, 6.4231e-6, 1e-12);
    assert_close(e->deviation, 0.0213 * 6.4231e-6, 1e-12);
    assert_close(e->count, 912, 0);
    assert_close(e->model_bytes, 1.306e12 * 6.4231e-6, 1e-12);
    assert_string_equal(e->cache, "cold");
    assert_string_equal(entry(run, "copy", "T=I32 Elements=1073741824")->unusable, "out of memory");
    assert_non_null(entry(run, "copy", "T=I64 Elements=1048576")->unusable); /* -nan, 0 samples */
    e = entry(load("nvbench/v0_numbers.json"), "scan", "n=16");
    assert_close(e->median, 2.4e-5, 1e-12);
    assert_close(e->q3, 2.44e-5, 1e-12);
}

static void nvbench_sample_file_beside_the_record_is_read(void **state)
{
    (void)state;
    static const char text[] =
        "{\"devices\": [], \"benchmarks\": [{\"name\": \"b\", \"states\": [{\"name\": \"\","
        "\"axis_values\": [], \"is_skipped\": false, \"summaries\": ["
        "{\"tag\": \"nv/cold/time/gpu/mean\", \"data\": [{\"name\": \"value\", \"value\": "
        "\"2e-6\"}]},"
        "{\"tag\": \"nv/json/bin:nv/cold/sample_times\", \"data\": [{\"name\": \"filename\","
        "\"value\": \"elsewhere/r.json-bin/0.bin\"}, {\"name\": \"size\", \"value\": "
        "\"3\"}]}]}]}]}";
    char folder[] = "/tmp/ridge-unit-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/r.json-bin", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/r.json-bin/0.bin", folder);
    FILE *file = fopen(path, "wb");
    const float samples[3] = {1e-6f, 2e-6f, 3e-6f};
    assert_int_equal(fwrite(samples, 4, 3, file), 3);
    fclose(file);
    snprintf(path, sizeof path, "%s/r.json", folder);
    rg_run *run;
    assert_ok(rg_run_parse(arena, path, text, strlen(text), NULL, &run, &err));
    assert_int_equal(run->entries[0].sample_count, 3);
    assert_close(rg_run_cost(arena, &run->entries[0], &err), 2e-6, 1e-6); /* float32 */
    snprintf(path, sizeof path, "%s/r.json-bin/0.bin", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/r.json-bin", folder);
    rmdir(path);
    rmdir(folder);
}

static void google_benchmark_repetitions_win_over_aggregates(void **state)
{
    (void)state;
    const rg_run *run = load("gbench/repetitions.json");
    assert_int_equal(run->count, 2); /* BigO is no measurement */
    const rg_run_entry *e = entry(run, "BM_axpy<float>", "1024/manual_time");
    assert_int_equal(e->sample_count, 3);
    assert_close(rg_run_cost(arena, e, &err), 12.6e-6, 1e-12);
    assert_string_equal(entry(run, "BM_bad", "")->unusable, "no device");
    run = load("gbench/aggregates_only_old.json");
    e = entry(run, "BM_f", "8");
    assert_close(e->median, 0.098, 1e-12);
    assert_close(e->deviation, 0.002, 1e-12);
    assert_non_null(entry(run, "BM_g", "")->unusable); /* NaN */
}

static void nccl_log_behind_rank_labels(void **state)
{
    (void)state;
    const rg_run *run = load("nccl/labelled.log");
    assert_int_equal(run->count, 6);
    /* the row that another rank broke */
    assert_true(entry(run, "reduce_scatter", "ranks=4 bytes=4194304 redop=sum in-place")->refused);
    const rg_run_entry *e =
        entry(run, "reduce_scatter", "ranks=4 bytes=1048576 redop=sum out-of-place");
    assert_close(rg_run_cost(arena, e, &err), 21.40e-6, 1e-12);
    assert_close(e->count, 20, 0);
    e = entry(run, "reduce_scatter", "ranks=4 bytes=2097152 redop=sum in-place");
    assert_string_equal(e->wrong, "3 wrong elements");
}

static void nccl_error_column_of_old_releases_is_no_count_of_wrong_elements(void **state)
{
    (void)state;
    const rg_run *run = load("nccl/old_error_column.log");
    assert_null(entry(run, "collective", "ranks=2 bytes=1024 redop=sum in-place")->wrong);
    assert_non_null(entry(run, "collective", "ranks=2 bytes=2048 redop=sum in-place")->unusable);
}

static void nccl_json_with_times_of_each_iteration(void **state)
{
    (void)state;
    const rg_run *run = load("nccl/per_iteration.json");
    /* two processes of eight GPUs; the writer lists the first rank of each */
    const rg_run_entry *e =
        entry(run, "all_reduce", "ranks=16 bytes=8388608 redop=sum out-of-place");
    assert_int_equal(e->sample_count, 5);
    assert_close(rg_run_cost(arena, e, &err), 71.4e-6, 1e-12);
    assert_non_null(
        entry(run, "all_reduce", "ranks=16 bytes=8388608 redop=sum in-place")->unusable);
}

static void nccl_samples_of_real_clusters(void **state)
{
    (void)state;
    skip_without(SHARED("inputs/files/nccl_allreduce_h100x8_nvls.log"));
    rg_run *run;
    assert_ok(rg_run_load(arena, SHARED("inputs/files/nccl_allreduce_h100x8_nvls.log"), NULL, &run,
                          &err));
    assert_int_equal(run->count, 12); /* 6 sizes, out of place and in place */
    const rg_run_entry *e = entry(run, "all_reduce", "ranks=8 bytes=4294967296 redop=sum in-place");
    assert_close(rg_run_cost(arena, e, &err), 15773e-6, 1e-12);
}

static void ncu_decimal_comma_is_found_over_the_whole_file(void **state)
{
    (void)state;
    const rg_run *run = load("ncu/european_details.csv");
    assert_int_equal(run->count, 1);
    const rg_run_entry *e = &run->entries[0];
    assert_string_equal(e->kernel, "gemm(float *, const float *, int)");
    assert_string_equal(e->problem, "grid=(64,64,1) block=(256,1,1)");
    assert_close(rg_run_cost(arena, e, &err), 105.38e-6, 1e-12);
    assert_close(e->cycles, 117344, 0); /* "117.344" */
    assert_close(e->clock_hz, 1.11e9, 1e-12);
    assert_close(e->shared_bytes, 16380, 1e-12);
    assert_close(e->blocks_per_sm, 2, 0);
    assert_true(isnan(e->dram_bytes)); /* one half is n/a: no sum of a half */
}

static void ncu_raw_page_scales_by_its_units_row(void **state)
{
    (void)state;
    const rg_run *run = load("ncu/raw_units.csv");
    const rg_run_entry *e = entry(run, "axpy", "grid=(4096,1,1) block=(256,1,1)");
    assert_int_equal(e->sample_count, 2);
    assert_close(rg_run_cost(arena, e, &err), 5.09e-6, 1e-9);
    assert_close(e->dram_bytes, 8.39e6 + 4194.30e3, 1e-12);
    assert_close(e->flops, 2 * 1048576.0, 0);
    assert_close(e->blocks_per_sm, 16, 0);
    assert_non_null(entry(run, "denied", "grid=(1,1,1) block=(1,1,1)")->unusable);
}

static void nsys_summary_and_trace(void **state)
{
    (void)state;
    const rg_run *run = load("nsys/kern_sum_old.csv");
    const rg_run_entry *e = entry(run, "void gemm<float, 128>(float const*, float*)", "");
    assert_close(e->mean, 306.1e-6, 1e-12);
    assert_close(e->count, 10, 0);
    run = load("nsys/gpu_trace.csv");
    assert_int_equal(run->count, 1); /* the copy has no grid */
    assert_string_equal(run->device, "NVIDIA H200");
    e = entry(run, "axpy", "grid=(64,1,1) block=(256,1,1)");
    assert_close(rg_run_cost(arena, e, &err), 12.6e-6, 1e-9);
    assert_close(e->registers, 40, 0);
}

static void rocprof_versions(void **state)
{
    (void)state;
    const rg_run_entry *e =
        entry(load("rocprof/v3_kernel_trace.csv"), "gemm(float*, int)", "grid=65536 group=256");
    assert_close(rg_run_cost(arena, e, &err), 51.5e-6, 1e-9);
    e = entry(load("rocprof/v1_counters.csv"), "copy(float*, float*) [clone .kd]",
              "grid=16777216 group=1024");
    assert_close(rg_run_cost(arena, e, &err), 40e-6, 1e-9);
    assert_close(e->dram_bytes, 131072 * 1024.0, 1e-12); /* two counters in KiB */
}

static void tables_of_times_and_of_rates(void **state)
{
    (void)state;
    const rg_run *run = load("table/do_bench.csv");
    const rg_run_entry *e = entry(run, "softmax", "M=4096 N=1024");
    assert_close(e->median, 21.3e-6, 1e-12);
    assert_close(e->q1, 21.1e-6, 1e-12);
    assert_string_equal(e->dtype, "fp16");
    assert_non_null(entry(run, "softmax", "M=4096 N=4096")->unusable);
    e = entry(load("table/perf_report.csv"), "Triton", "M=2048 N=2048 K=2048");
    assert_string_equal(e->rate_unit, "FLOP/s");
    assert_close(1 / rg_run_cost(arena, e, &err), 571.9e12, 1e-12);
    e = entry(load("table/european.csv"), "add/torch", "size=1048576");
    assert_int_equal(e->sample_count, 2);
    assert_close(rg_run_cost(arena, e, &err), 12.78e-6, 1e-12);
}

static void table_without_a_unit_is_refused_until_one_is_given(void **state)
{
    (void)state;
    static const char text[] = "N,torch,mine\n128,0.5,0.25\n256,0.7,0.35\n";
    assert_non_null(strstr(refuse(text), "names no unit"));
    err = (rg_err){0};
    const rg_run *run = parse(text, "ms");
    assert_close(rg_run_cost(arena, entry(run, "mine", "N=256"), &err), 0.35e-3, 1e-12);
}

static void rows_of_a_table_are_samples_by_process(void **state)
{
    (void)state;
    const rg_run *run = parse("kernel,run,time_us\na,0,1.0\na,0,1.1\na,1,1.2\n", NULL);
    assert_int_equal(run->entries[0].sample_count, 3);
    assert_int_equal(run->entries[0].processes, 2);
}

static void numbers_of_two_locales_in_one_file_are_refused(void **state)
{
    (void)state;
    assert_non_null(strstr(refuse("kernel;time_us\na;1,5\nb;2.75\n"), "two locales"));
}

static void program_output_before_json_keeps_the_lines(void **state)
{
    (void)state;
    const rg_run *run =
        parse("warming up {not json}\n{\"schema\": \"ridge.probe/1\", \"kernels\": [\n"
              "{\"name\": \"a\", \"samples_us\": [1, 2, 3]}]}\n",
              NULL);
    assert_int_equal(run->entries[0].pos.line, 3);
}

static void the_kernel_report_is_found_among_those_of_nsys(void **state)
{
    (void)state;
    const rg_run *run = parse(
        "Processing [r.sqlite] with [osrt_sum.py]...\n\n ** OS Runtime Summary (osrt_sum):\n\n"
        "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        "99.0,1000000,10,100000.0,100000.0,1,2,1.0,poll\n\n"
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        "60.0,60000,6,10000.0,9900.0,9000,12000,800.0,\"void k<int, 2>(int*)\"\n\n"
        "Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation\n"
        "100.0,5000,5,1000.0,1000.0,900,1100,50.0,[CUDA memcpy HtoD]\n",
        NULL);
    assert_int_equal(run->count, 1);
    assert_close(entry(run, "void k<int, 2>(int*)", "")->median, 9.9e-6, 1e-12);
}

static void ncu_summary_by_kernel_keeps_grids_apart(void **state)
{
    (void)state;
    const rg_run *run =
        parse("\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Block Size\",\"Grid "
              "Size\","
              "\"Device\",\"CC\",\"Invocations\",\"Section Name\",\"Metric Name\",\"Metric Unit\","
              "\"Minimum\",\"Maximum\",\"Average\"\n"
              "\"1\",\"p\",\"h\",\"k\",\"(32, 1, 1)\",\"(8, 1, "
              "1)\",\"0\",\"8.0\",\"3\",\"S\",\"Duration\","
              "\"usecond\",\"2.1\",\"2.5\",\"2.3\"\n"
              "\"1\",\"p\",\"h\",\"k\",\"(32, 1, 1)\",\"(9, 1, "
              "1)\",\"0\",\"8.0\",\"3\",\"S\",\"Duration\","
              "\"usecond\",\"4.1\",\"4.5\",\"4.3\"\n",
              NULL);
    assert_int_equal(run->count, 2);
    assert_close(rg_run_cost(arena, entry(run, "k", "grid=(9,1,1) block=(32,1,1)"), &err), 4.3e-6,
                 1e-9);
}

static void kernels_that_the_probe_did_not_run_say_why(void **state)
{
    (void)state;
    const rg_run *run =
        parse("{\"schema\": \"ridge.probe/1\", \"clock\": {\"state\": \"not locked by "
              "ridge\"}, \"kernels\": [{\"name\": \"a\", \"samples_us\": [1, 2]}],"
              "\"not_run\": [{\"name\": \"b\", \"problem\": {\"n\": 1}, "
              "\"reason\": \"needs sm_90a\"}]}",
              NULL);
    assert_string_equal(run->clocks, "unlocked");
    assert_string_equal(entry(run, "b", "n=1")->unusable, "needs sm_90a");
}

static void versions_and_figures_in_other_columns_are_no_numbers_of_the_table(void **state)
{
    (void)state;
    const rg_run *run = parse("routine,torch_version,median_time_ms,speedup,tb_per_sec\n"
                              "decode,2.1.0,0.125,1.75,2.625\n",
                              NULL);
    assert_string_equal(run->entries[0].problem, "routine=decode torch_version=2.1.0");
    assert_close(rg_run_cost(arena, &run->entries[0], &err), 125e-6, 1e-12);
}

static void serving_results_are_one_observation_a_run(void **state)
{
    (void)state;
    const rg_run *run = load("serving/vllm.json");
    const char *problem = "model=a/b requests=100 rate=inf concurrency=8";
    assert_close(rg_run_cost(arena, entry(run, "ttft median", problem), &err), 0.110, 1e-12);
    const rg_run_entry *e = entry(run, "output tokens", problem);
    assert_string_equal(e->rate_unit, "token/s");
    assert_close(1 / rg_run_cost(arena, e, &err), 2000, 1e-12);
    assert_int_equal(e->sample_count, 1);
    /* 70000 tokens in 10 s are 7000 a second, not the 7100 that the file prints */
    assert_int_equal(run->note_count, 1);
    assert_non_null(strstr(run->notes[0], "total_token_throughput"));
    run = load("serving/genai_perf.csv");
    assert_close(rg_run_cost(arena, entry(run, "Time To First Token p50", ""), &err), 1.4e-3,
                 1e-12);
    assert_close(1 / rg_run_cost(arena, entry(run, "output tokens", ""), &err), 1261.25, 1e-12);
    assert_null(rg_run_find(run, "Output Sequence Length avg", "", "")); /* no time */
}

static void profiler_trace_groups_launches_by_name_and_grid(void **state)
{
    (void)state;
    const rg_run *run = load("kineto/two_launches.json");
    assert_int_equal(run->count, 1);
    assert_string_equal(run->device, "NVIDIA H200");
    const rg_run_entry *e =
        entry(run, "void gemm<float>(float*)", "grid=(128,1,1) block=(256,1,1)");
    assert_int_equal(e->sample_count, 2);
    assert_close(rg_run_cost(arena, e, &err), 12.5e-6, 1e-12);
    assert_close(e->registers, 96, 0);
}

/* The text with one part put in place of another. */
static char *with(const char *file, const char *old, const char *new)
{
    char path[256], *text;
    size_t length;
    snprintf(path, sizeof path, "tests/fuzz/corpus/%s", file);
    assert_ok(rg_file_read(arena, path, 1 << 20, &text, &length, &err));
    const char *at = strstr(text, old);
    assert_non_null(at);
    return (char *)rg_arena_printf(arena, &err, "%.*s%s%s", (int)(at - text), text, new,
                                   at + strlen(old));
}

static bool has_note(const rg_run *run, const char *part)
{
    for (int i = 0; i < run->note_count; i++)
        if (strstr(run->notes[i], part) != NULL)
            return true;
    return false;
}

static void a_value_that_is_no_measurement_is_named_by_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *file, *number, *kernel, *problem, *place;
    } all[] = {
        {"nccl/labelled.log", "28.22", "reduce_scatter",
         "ranks=4 bytes=2097152 redop=sum out-of-place", "inline:16:"},
        {"nccl/labelled.log", "55.73", "reduce_scatter",
         "ranks=4 bytes=2097152 redop=sum out-of-place", "inline:16:"},
        {"nccl/labelled.log", " 131072 ", "reduce_scatter",
         "ranks=4 bytes=2097152 redop=sum in-place", "inline:16:"},
        {"ncu/european_details.csv", "105,38", "gemm(float *, const float *, int)",
         "grid=(64,64,1) block=(256,1,1)", "inline:8: "},
        {"serving/genai_perf.csv", "\"2,500,000.00\"", "Time To First Token p99", "", "inline:2: "},
        {"serving/genai_perf.csv", "\"1,261.25\"", "output tokens", "", "inline:6: "},
    };
    static const char *const bad[] = {" nan ", " -1 ", " text ", ""};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
            if (strchr(all[i].number, ' ') != NULL && bad[k][0] == '\0')
                continue; /* no such column: another row */
            const rg_run *run = parse(with(all[i].file, all[i].number, bad[k]), NULL);
            const rg_run_entry *e = entry(run, all[i].kernel, all[i].problem);
            assert_true(e->refused);
            assert_non_null(strstr(e->unusable, "is no measurement"));
            assert_true(has_note(run, all[i].place));
        }
    /* A size that is none keeps its row, under what stands there. */
    const rg_run *run = parse(with("nccl/labelled.log", "2097152", "nan"), NULL);
    assert_true(entry(run, "reduce_scatter", "ranks=4 bytes=nan redop=sum in-place")->refused);
    assert_true(has_note(run, "inline:16:"));
}

static void json_of_no_known_kind_lists_the_kinds(void **state)
{
    (void)state;
    assert_non_null(strstr(refuse("{\"schema\":\"ridge-run-1\",\"results\":[]}"),
                           "JSON of no known kind; known are"));
    assert_non_null(strstr(refuse("{\"results\":[{\"a\":1}]}"), "JSON of no known kind"));
}

static void utf16_of_a_windows_redirect_is_read(void **state)
{
    (void)state;
    static const char ascii[] = "kernel,time_us\nk,10\n";
    char wide[2 * sizeof ascii] = "\xff\xfe";
    for (size_t i = 0; i + 1 < sizeof ascii; i++) {
        wide[2 + 2 * i] = ascii[i];
        wide[3 + 2 * i] = 0;
    }
    rg_run *run;
    assert_ok(rg_run_parse(arena, "inline", wide, 2 * sizeof ascii, NULL, &run, &err));
    assert_close(rg_run_cost(arena, entry(run, "k", ""), &err), 10e-6, 1e-12);
}

static void lines_of_json_are_repeats(void **state)
{
    (void)state;
    const rg_run *run =
        parse("{\"completed\": 9, \"median_ttft_ms\": 100.0, \"mean_ttft_ms\": 1}\n"
              "{\"completed\": 9, \"median_ttft_ms\": 104.0, \"mean_ttft_ms\": 1}\n"
              "{\"completed\": 9, \"median_ttft_ms\": 102.0, \"mean_ttft_ms\": 1}\n",
              NULL);
    const rg_run_entry *e = entry(run, "ttft median", "model=unnamed requests=9 rate=unsaid");
    assert_int_equal(e->processes, 3);
    assert_close(rg_run_cost(arena, e, &err), 0.102, 1e-12);
}

static void no_measurement_is_an_error(void **state)
{
    (void)state;
    refuse("{\"context\": {}, \"benchmarks\": []}");
    refuse("hello\n");
    refuse("{\"schema\": \"ridge.probe/9\", \"kernels\": []}");
    refuse("{\"a\": 1}");
    refuse("\"never closed\nID,2\n");
}

static void repeats_of_one_program_merge_into_processes(void **state)
{
    (void)state;
    rg_run *a = parse("kernel,time_us\nk,10\nk,11\n", NULL),
           *b = parse("kernel,time_us\nk,12\n", NULL);
    assert_ok(rg_run_merge(arena, a, b, &err));
    assert_int_equal(a->entries[0].processes, 2);
    assert_int_equal(a->entries[0].sample_count, 3);
    assert_int_equal(a->entries[0].process[2], 1);
    rg_run *other = load("nsys/kern_sum_old.csv");
    assert_int_equal(rg_run_merge(arena, a, other, &err), RG_ERR_INPUT);
}

static void group_separators_of_many_countries(void **state)
{
    (void)state;
    const rg_locale point = {.decimal = '.'}, comma = {.decimal = ','};
    double value;
    assert_true(rg_locale_number(&point, "53,261,312", &value));
    assert_close(value, 53261312, 0);
    assert_true(rg_locale_number(&comma, "27.595.520,5", &value));
    assert_close(value, 27595520.5, 0);
    assert_true(rg_locale_number(&comma,
                                 "1\xe2\x80\xaf"
                                 "234,5",
                                 &value)); /* U+202F */
    assert_close(value, 1234.5, 0);
    assert_true(rg_locale_number(&point, "1'234.5", &value));
    assert_close(value, 1234.5, 0);
    assert_false(rg_locale_number(&point, "n/a", &value));
    assert_false(rg_locale_number(&point, "nan", &value));
    assert_false(rg_locale_number(&point, "", &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(probe_record_keeps_problem_samples_and_resources),
        T(skipped_probe_record_says_why),
        T(nvbench_values_as_strings_and_as_numbers),
        T(nvbench_sample_file_beside_the_record_is_read),
        T(google_benchmark_repetitions_win_over_aggregates),
        T(nccl_log_behind_rank_labels),
        T(a_value_that_is_no_measurement_is_named_by_its_line),
        T(json_of_no_known_kind_lists_the_kinds),
        T(nccl_error_column_of_old_releases_is_no_count_of_wrong_elements),
        T(nccl_json_with_times_of_each_iteration),
        T(nccl_samples_of_real_clusters),
        T(ncu_decimal_comma_is_found_over_the_whole_file),
        T(ncu_raw_page_scales_by_its_units_row),
        T(nsys_summary_and_trace),
        T(rocprof_versions),
        T(tables_of_times_and_of_rates),
        T(table_without_a_unit_is_refused_until_one_is_given),
        T(rows_of_a_table_are_samples_by_process),
        T(numbers_of_two_locales_in_one_file_are_refused),
        T(program_output_before_json_keeps_the_lines),
        T(the_kernel_report_is_found_among_those_of_nsys),
        T(ncu_summary_by_kernel_keeps_grids_apart),
        T(kernels_that_the_probe_did_not_run_say_why),
        T(versions_and_figures_in_other_columns_are_no_numbers_of_the_table),
        T(serving_results_are_one_observation_a_run),
        T(profiler_trace_groups_launches_by_name_and_grid),
        T(utf16_of_a_windows_redirect_is_read),
        T(lines_of_json_are_repeats),
        T(no_measurement_is_an_error),
        T(repeats_of_one_program_merge_into_processes),
        T(group_separators_of_many_countries),
#undef T
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
