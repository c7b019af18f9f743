/* kernels/probe/command.c: run, check, list, metrics, evaluate, env.
 *
 * Reads command.h, record.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "embedded.h"
#include "image.h"
#include "record.h"

rg_status rg_session_open(rg_arena *arena, rg_session *session, const rg_probe_options *options,
                          rg_err *err)
{
    memset(session, 0, sizeof *session);
    RG_TRY(rg_cuda_open(&session->cuda, options->cuda_lib, err));
    RG_TRY(rg_gpu_open(&session->gpu, &session->cuda, options->device, err));
    session->emulated = session->cuda.emulated;
    if (session->emulated)
        fputs("ridge-probe: CPU emulation: results are checked, times say nothing of any GPU\n",
              stderr);
    rg_nvml_open(&session->nvml, options->cuda_lib, session->gpu.figures.pci);
    if (options->counters == RG_SET_COUNT)
        snprintf(session->cupti_reason, sizeof session->cupti_reason, "not asked for");
    else if (session->emulated && !getenv("RIDGE_EMU_CUPTI"))
        snprintf(session->cupti_reason, sizeof session->cupti_reason, "an emulation has none");
    else
        session->cupti = rg_cupti_open(arena, options->cuda_lib, session->cupti_reason,
                                       sizeof session->cupti_reason);
    return RG_OK;
}

void rg_session_close(rg_session *session)
{
    rg_gpu_close(&session->gpu);
}

bool rg_probe_chosen(const rg_probe_options *options, const rg_family *family)
{
    for (int i = 0; i < options->operand_count; i++)
        if (strcmp(options->operands[i], family->name) == 0)
            return true;
    return options->operand_count == 0;
}

/** The problems of a family that the options ask for. */
static rg_problem_list *problems_of(rg_arena *arena, const rg_probe_options *options,
                                    const rg_family *family, rg_err *err)
{
    rg_problem_list *list = RG_NEW(arena, rg_problem_list, 1, err);
    if (!list)
        return NULL;
    family->problems(list, (rg_extent)options->extent);
    int kept = 0;
    for (int i = 0; i < list->count; i++) {
        rg_problem *problem = &list->items[i];
        if ((options->variant && strcmp(options->variant, problem->variant) != 0) ||
            (options->dtype && strcmp(options->dtype, problem->dtype) != 0))
            continue;
        for (int s = 0; s < options->setting_count; s++)
            for (int k = 0; k < problem->key_count; k++)
                if (strcmp(problem->keys[k].name, options->settings[s].name) == 0)
                    problem->keys[k].value = options->settings[s].value;
        /* --set may have made two problems one */
        bool again = false;
        for (int j = 0; j < kept && !again; j++)
            again = memcmp(&list->items[j], problem, sizeof *problem) == 0;
        if (!again)
            list->items[kept++] = *problem;
    }
    list->count = kept;
    return list;
}

static rg_status image_path(rg_arena *arena, const rg_probe_options *options,
                            const rg_problem *problem, int index, const char **out, rg_err *err)
{
    *out = NULL;
    if (!options->images)
        return RG_OK;
    if (mkdir(options->images, 0777) != 0 && errno != EEXIST)
        return rg_fail(err, RG_ERR_IO, RG_NOWHERE, "cannot make folder '%s': %s", options->images,
                       strerror(errno));
    *out = rg_arena_printf(arena, err, "%s/%s_%s_%s_%d.cdimg", options->images, problem->kernel,
                           problem->variant, problem->dtype, index);
    return *out ? RG_OK : RG_ERR_LIMIT;
}

static void report_line(const rg_problem *problem, const rg_bench *bench, const rg_timing *timing,
                        const rg_counters *counters)
{
    char text[256];
    rg_problem_text(problem, text, sizeof text);
    fprintf(stderr, "%-14s %-10s %-9s %-64s %10.2f us", problem->kernel, problem->variant,
            problem->dtype, text, timing->median_us);
    if (bench->bytes > 0)
        fprintf(stderr, " %8.1f GB/s", bench->bytes / timing->median_us / 1e3);
    if (bench->flops > 0)
        fprintf(stderr, " %8.2f TFLOP/s", bench->flops / timing->median_us / 1e6);
    if (counters->valid && bench->bytes > 0 && isfinite(counters->dram_bytes))
        fprintf(stderr, " DRAM/model %.3f", counters->dram_bytes / bench->bytes);
    if (bench->label)
        fprintf(stderr, " [%s]", bench->label);
    fputc('\n', stderr);
}

/** Time, trace and count a prepared problem, and record it. */
static rg_status measure_problem(rg_arena *arena, rg_session *session,
                                 const rg_probe_options *options, const rg_problem *problem,
                                 int index, rg_bench *bench, rg_record *record, rg_err *err)
{
    rg_timing timing;
    rg_counters counters = {.dram_bytes = NAN};
    rg_activity activity = {.valid = false};
    RG_TRY(
        rg_measure(arena, &session->gpu, &session->nvml, bench, &options->measure, &timing, err));
    if (session->cupti) {
        const char *path = NULL;
        RG_TRY(image_path(arena, options, problem, index, &path, err));
        rg_cupti_activity(session->cupti, arena, &session->gpu, bench, 20, &activity);
        rg_cupti_count(session->cupti, arena, &session->gpu, bench,
                       (rg_metric_set)options->counters, problem->dtype, path, &counters);
    } else {
        snprintf(counters.reason, sizeof counters.reason, "%s", session->cupti_reason);
        snprintf(activity.reason, sizeof activity.reason, "%s", counters.reason);
    }
    rg_record_kernel(record, problem, bench, &timing, !options->warm, &counters, &activity);
    report_line(problem, bench, &timing, &counters);
    return RG_OK;
}

static rg_status run_problem(rg_arena *arena, rg_session *session, const rg_probe_options *options,
                             const rg_family *family, const rg_problem *problem, int index,
                             rg_record *record, rg_err *err)
{
    char why[512] = "";
    if (family->usable && !family->usable(&session->gpu, problem, why, sizeof why)) {
        rg_record_not_run(record, problem, why);
        return RG_OK;
    }
    rg_bench bench = {.per_launch = 1};
    RG_TRY(family->prepare(arena, &session->gpu, problem, !options->warm, &bench, err));
    const rg_status status =
        measure_problem(arena, session, options, problem, index, &bench, record, err);
    if (bench.release)
        bench.release(&bench);
    return status;
}

/** Whether the device still works after a failure; a fault in a kernel ends its context. */
static bool is_alive(rg_session *session)
{
    rg_err ignored;
    return rg_gpu_use(&session->gpu, &ignored) == RG_OK &&
           rg_gpu_sync(&session->gpu, &ignored) == RG_OK;
}

static rg_status run_family(rg_session *session, const rg_probe_options *options,
                            const rg_family *family, rg_record *record, rg_err *err)
{
    rg_arena *arena = rg_arena_new(4096);
    if (!arena)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory");
    rg_arena *scratch = rg_arena_new(4096);
    const rg_problem_list *list = problems_of(arena, options, family, err);
    rg_status status = list && scratch ? RG_OK : RG_ERR_LIMIT;
    for (int i = 0; status == RG_OK && i < list->count; i++) {
        const int mark = rg_gpu_mark(&session->gpu);
        rg_arena_reset(scratch);
        status = run_problem(scratch, session, options, family, &list->items[i], i, record, err);
        rg_gpu_release_to(&session->gpu, mark);
        if (status == RG_ERR_DEVICE) {
            rg_record_not_run(record, &list->items[i], err->text);
            if (is_alive(session)) {
                *err = (rg_err){0};
                status = RG_OK;
            }
        }
    }
    rg_arena_free(scratch);
    rg_arena_free(arena);
    return status;
}

static void record_libraries(rg_record *record, const rg_session *session)
{
    char text[64] = "";
    if (session->cupti)
        snprintf(text, sizeof text, "%d", rg_cupti_version(session->cupti));
    rg_record_library(record, "cupti", session->cupti != NULL,
                      session->cupti ? text : session->cupti_reason);
    rg_record_library(record, "nvml", session->nvml.device != NULL,
                      session->nvml.device ? session->nvml.driver : session->nvml.reason);
}

static rg_status run_all(rg_session *session, const rg_probe_options *options, rg_record *record,
                         rg_err *err)
{
    record_libraries(record, session);
    rg_status status = RG_OK;
    for (const rg_family *const *family = rg_families; *family && status == RG_OK; family++)
        if (rg_probe_chosen(options, *family))
            status = run_family(session, options, *family, record, err);
    if (status == RG_OK && json_array_size(record->kernels) == 0) {
        const json_t *first = json_array_get(record->not_run, 0);
        if (!first)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "no problem has this --variant and --dtype; `ridge-probe list KERNEL` "
                           "shows them");
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "nothing could be run on this GPU; %s",
                       json_string_value(json_object_get(first, "reason")));
    }
    if (json_array_size(record->kernels) == 0)
        return status;
    /* what was measured before a failure is kept */
    RG_TRY(rg_record_write(record, options->output ? options->output : "-",
                           status == RG_OK ? err : &(rg_err){0}));
    if (options->csv && status == RG_OK)
        RG_TRY(rg_record_csv(record, options->csv, err));
    return status;
}

rg_status rg_probe_run(rg_arena *arena, const rg_probe_options *options, rg_err *err)
{
    rg_session session;
    rg_record record = {NULL, NULL, NULL};
    rg_status status = rg_session_open(arena, &session, options, err);
    if (status == RG_OK) {
        rg_record_begin(&record, &session.gpu, &session.nvml, options->command_line,
                        session.emulated);
        status = run_all(&session, options, &record, err);
        rg_record_end(&record);
    }
    rg_session_close(&session);
    return status;
}

static rg_status check_all(rg_session *session, const rg_probe_options *options, rg_check_log *log,
                           rg_err *err)
{
    for (const rg_family *const *family = rg_families; *family; family++) {
        if (!rg_probe_chosen(options, *family) || !(*family)->check)
            continue;
        rg_arena *arena = rg_arena_new(4096);
        if (!arena)
            return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory");
        const int mark = rg_gpu_mark(&session->gpu);
        const rg_status status = (*family)->check(arena, &session->gpu, log, err);
        rg_gpu_release_to(&session->gpu, mark);
        rg_arena_free(arena);
        if (status != RG_OK) {
            printf("not ok %d - %s: %s\n", ++log->count, (*family)->name, err->text);
            log->failed++;
            if (status != RG_ERR_DEVICE || !is_alive(session))
                return status;
            *err = (rg_err){0};
        }
    }
    printf("1..%d\n", log->count);
    if (log->failed > 0)
        return rg_fail(err, RG_ERR_NO, RG_NOWHERE, "%d of %d checks failed", log->failed,
                       log->count);
    return RG_OK;
}

rg_status rg_probe_check(rg_arena *arena, const rg_probe_options *options, rg_err *err)
{
    rg_session session;
    rg_check_log log = {stdout, 0, 0};
    rg_probe_options without = *options;
    without.counters = RG_SET_COUNT;
    rg_status status = rg_session_open(arena, &session, &without, err);
    if (status == RG_OK)
        status = check_all(&session, options, &log, err);
    rg_session_close(&session);
    return status;
}

rg_status rg_probe_list(rg_arena *arena, const rg_probe_options *options, rg_err *err)
{
    for (const rg_family *const *family = rg_families; *family; family++) {
        if (!rg_probe_chosen(options, *family))
            continue;
        const rg_problem_list *list = problems_of(arena, options, *family, err);
        if (!list)
            return RG_ERR_LIMIT;
        printf("%-14s %s; %d problems%s%s\n", (*family)->name, (*family)->summary, list->count,
               (*family)->measured_op ? ", table " : "",
               (*family)->measured_op ? (*family)->measured_op : "");
        for (int i = 0; i < list->count && options->operand_count > 0; i++) {
            char text[256];
            rg_problem_text(&list->items[i], text, sizeof text);
            printf("  %-10s %-9s %s\n", list->items[i].variant, list->items[i].dtype, text);
        }
    }
    return RG_OK;
}

static rg_status print_set(rg_cupti *cupti, rg_arena *arena, const char *chip, rg_metric_set set,
                           rg_err *err)
{
    rg_err why = {0};
    const char *const *names = rg_metrics_of(arena, chip, set, "bfloat16", &why);
    if (!names && why.status == RG_ERR_MODEL) {
        printf("%s %s: none: %s\n", chip, rg_metric_set_names[set], why.text);
        return RG_OK;
    }
    if (!names)
        return rg_fail(err, why.status, RG_NOWHERE, "%s", why.text);
    int passes = 0;
    RG_TRY(rg_cupti_passes(cupti, chip, names, &passes, err));
    printf("%s %s: %d pass%s\n", chip, rg_metric_set_names[set], passes, passes == 1 ? "" : "es");
    for (; *names; names++) {
        const char *unit = NULL, *text = NULL;
        RG_TRY(rg_cupti_describe(cupti, arena, chip, *names, &unit, &text, err));
        printf("  %-66s %-12s %s\n", *names, unit, text);
    }
    return RG_OK;
}

rg_status rg_probe_metrics(rg_arena *arena, const rg_probe_options *options, rg_err *err)
{
    char why[512];
    rg_cupti *cupti = rg_cupti_open(arena, options->cuda_lib, why, sizeof why);
    if (!cupti)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "no CUPTI: %s", why);
    if (options->all) {
        const char *const *names = NULL;
        size_t count = 0;
        if (!options->chip)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "--all needs --chip, such as GH100");
        RG_TRY(rg_cupti_list(cupti, arena, options->chip, &names, &count, err));
        for (size_t i = 0; i < count; i++)
            puts(names[i]);
        return RG_OK;
    }
    if (options->operand_count > 0) { /* passes of metrics that the user names */
        int passes = 0;
        if (!options->chip)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "metric names need --chip, such as GH100");
        const char *names[RG_PROBE_OPERANDS + 1] = {NULL};
        for (int i = 0; i < options->operand_count; i++)
            names[i] = options->operands[i];
        RG_TRY(rg_cupti_passes(cupti, options->chip, names, &passes, err));
        printf("%d\n", passes);
        return RG_OK;
    }
    for (const char *const *chip = rg_metric_chips; *chip; chip++)
        for (int set = 0; set < RG_SET_COUNT && !options->chip; set++)
            RG_TRY(print_set(cupti, arena, *chip, (rg_metric_set)set, err));
    for (int set = 0; set < RG_SET_COUNT && options->chip; set++)
        RG_TRY(print_set(cupti, arena, options->chip, (rg_metric_set)set, err));
    return RG_OK;
}

rg_status rg_probe_evaluate(rg_arena *arena, const rg_probe_options *options, rg_err *err)
{
    char why[512];
    rg_cupti *cupti = rg_cupti_open(arena, options->cuda_lib, why, sizeof why);
    if (!cupti)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "no CUPTI: %s", why);
    if (options->operand_count == 0)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "evaluate needs counter data images (.cdimg)");
    puts("file,metric,value,recorded");
    int differing = 0;
    for (int i = 0; i < options->operand_count; i++) {
        rg_image image;
        double values[RG_MAX_METRICS] = {0};
        RG_TRY(rg_image_read(arena, options->operands[i], &image, err));
        RG_TRY(rg_cupti_evaluate(cupti, image.chip, image.data, image.bytes, image.metrics, 0,
                                 values, err));
        for (int m = 0; m < image.metric_count; m++) {
            printf("%s,%s,%.17g,%.17g\n", options->operands[i], image.metrics[m], values[m],
                   image.values[m]);
            differing += !(fabs(values[m] - image.values[m]) <= 1e-9 * fabs(image.values[m]));
        }
    }
    if (differing > 0)
        return rg_fail(err, RG_ERR_NO, RG_NOWHERE,
                       "'%d' values are not those that were recorded with the images", differing);
    return RG_OK;
}

static void print_library(const char *title, const char *folder, const char *const *names)
{
    char why[512];
    void *library = rg_cuda_library(folder, names, why, sizeof why);
    printf("%-10s %s%s\n", title, library ? "found" : "not available: ", library ? "" : why);
}

rg_status rg_probe_env(rg_arena *arena, const rg_probe_options *options, rg_err *err)
{
    static const char *const cublas[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    static const char *const nccl[] = {"libnccl.so.2", NULL};
    static const char *const nvml[] = {"libnvidia-ml.so.1", NULL};
    char why[512];
    printf("kernels    %d embedded module%s\n", rg_embedded_count,
           rg_embedded_count == 1 ? "" : "s");
    const rg_cupti *cupti = rg_cupti_open(arena, options->cuda_lib, why, sizeof why);
    if (cupti)
        printf("CUPTI      version %d\n", rg_cupti_version(cupti));
    else
        printf("CUPTI      not available: %s\n", why);
    print_library("cuBLASLt", options->cuda_lib, cublas);
    print_library("NCCL", options->cuda_lib, nccl);
    print_library("NVML", options->cuda_lib, nvml);
    rg_session session;
    const rg_status status = rg_session_open(arena, &session, options, err);
    if (status == RG_OK) {
        const rg_gpu_figures *f = &session.gpu.figures;
        printf("driver     CUDA %d.%d, %d device%s\n", session.cuda.driver_version / 1000,
               session.cuda.driver_version % 1000 / 10, session.cuda.device_count,
               session.cuda.device_count == 1 ? "" : "s");
        printf("device     %s, sm_%d%d, %d SMs, %.1f of %.1f GB free%s%s%s\n", f->name, f->major,
               f->minor, f->sms, 1e-9 * (double)f->memory_free_bytes,
               1e-9 * (double)f->memory_bytes, f->ecc ? ", ECC" : "",
               f->mig || session.nvml.mig_mode == 1 ? ", MIG" : "", f->mps ? ", MPS" : "");
    }
    rg_session_close(&session);
    return status;
}
