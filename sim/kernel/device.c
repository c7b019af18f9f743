/* kernel/device.c: resolving a hardware file into the figures and constants of the models. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel/device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <math.h>
#include <string.h>

/* What a generation changes beyond its datasheet, and which fitted devices lend constants to it:
 * one for what the machine does, one for what the kernel library does.
 *   fine     tiles in steps of 8 rows come with warp-group matrix instructions (CUTLASS, wgmma
 *            shapes), and with clusters whose SMs load what they share once
 *   vector   the library's decode falls back to a kernel without matrix units for some head
 *            counts; its newer kernels cover all
 *   pairs    two SMs work on one tile and share its operands (NVIDIA Blackwell tuning guide, CTA
 *            pairs), and accumulators leave the registers, so softmax runs beside the products
 *            (T. Dao et al., "FlashAttention-4", 2025)
 *   exp      exponentials an SM does in a cycle (CUDA C++ Programming Guide, table "Throughput of
 *            Native Arithmetic Instructions"; twice that announced for Blackwell Ultra)
 */
typedef struct lender_row {
    const char *arch;
    const char *machine, *software;
    bool fine, vector, pairs;
    double exp;
} lender_row;

static const lender_row lenders[] = {
    {"hopper", "h200-sxm", "h200-sxm", true, true, false, 16},
    {"ampere", "a100-sxm-80gb", "a100-sxm-80gb", false, true, false, 16},
    {"ampere-ga10x", "a100-sxm-80gb", "h200-sxm", false, true, false, 16},
    {"volta", "a100-sxm-80gb", "a100-sxm-80gb", false, true, false, 16},
    {"ada", "a100-sxm-80gb", "h200-sxm", false, true, false, 16},
    {"blackwell", "h200-sxm", "h200-sxm", true, false, true, 16},
    {"blackwell-ultra", "h200-sxm", "h200-sxm", true, false, true, 32},
    {"blackwell-rtx", "a100-sxm-80gb", "h200-sxm", false, true, false, 16},
};
/* Any other architecture: the youngest fitted device. */
static const lender_row any_lender = {"", "h200-sxm", "h200-sxm", true, true, false, 16};

/* A read that hits in L2: bytes per cycle and SM where the hardware file gives no figure of the
 * whole. 5120 B per clock for 108 SMs (A100 whitepaper), about 36 measured by the loop of all SMs
 * (RRZE-HPC/gpu-benches, gpu-l2-cache, A100 and H100 PCIe). */
static const double l2_hit_bytes_per_cycle = 36.0;

/* Shared memory: 32 banks of 4 B since Volta, where the hardware file says nothing. */
static const double shared_bytes_per_cycle = 128.0;

/* Where a file gives no latency of the memory, s: assumed, as measured on Hopper. */
static const double usual_latency = 347e-9;

static const lender_row *lender_of(const char *arch)
{
    for (size_t i = 0; i < sizeof lenders / sizeof lenders[0]; i++)
        if (arch && strcmp(lenders[i].arch, arch) == 0)
            return &lenders[i];
    return &any_lender;
}

static rg_status figure_of(const rg_accel *accel, const rg_figure *figure, const char *what,
                           double *out, rg_err *err)
{
    if (!figure->known)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "%s: no figure for %s, which the kernel model needs", accel->name, what);
    *out = figure->value;
    return RG_OK;
}

/* Constants per unit come from SMs that do 4096 flop per clock in 16 bits (H100 whitepaper). A
 * systolic array counts as so many of them as its flop per clock make: one of 128 x 128 as 8. */
static const double sm_flop_per_clock = 4096.0;

static void count_arrays_as_units(const rg_accel *accel, rg_kernel_device *device)
{
    const rg_peak *peak = rg_accel_peak(accel, RG_BF16);
    if (accel->systolic_rows.known && peak != NULL)
        device->units = fmax(1.0, round(peak->rate.value / (sm_flop_per_clock * device->hz)));
}

static rg_status take_figures(const rg_accel *accel, rg_kernel_device *device, rg_err *err)
{
    RG_TRY(figure_of(accel, &accel->units, "units.count", &device->units, err));
    RG_TRY(figure_of(accel, &accel->boost_clock, "clocks.boost", &device->hz, err));
    count_arrays_as_units(accel, device);
    const rg_memory_level *memory = rg_accel_memory(accel), *l2 = rg_accel_level(accel, "l2");
    RG_TRY(figure_of(accel, &memory->bandwidth, "memory bandwidth", &device->memory_rate, err));
    device->memory_latency = memory->latency.known ? memory->latency.value : usual_latency;
    device->l2_bytes = l2 && l2 != memory && l2->capacity.known ? l2->capacity.value : 0.0;
    const double partitions = l2 && l2->partitions.known ? l2->partitions.value : 1.0;
    device->l2_room = device->l2_bytes / partitions;
    device->l2_rate = l2_hit_bytes_per_cycle * device->units * device->hz;
    if (device->l2_rate < device->memory_rate)
        device->l2_rate = device->memory_rate;
    const rg_memory_level *l1 = rg_accel_level(accel, "l1");
    device->shared_bytes_per_cycle = l1 && l1->per_unit && l1->bytes_per_clock.known
                                         ? l1->bytes_per_clock.value
                                         : shared_bytes_per_cycle;
    for (int type = 0; type < RG_DTYPE_COUNT; type++) {
        const rg_peak *peak = rg_accel_peak(accel, (rg_dtype)type);
        device->peak[type] = peak && peak->rate.known ? peak->rate.value : 0.0;
    }
    for (int i = 0; i < accel->peak_count; i++)
        if (!accel->peaks[i].matrix && accel->peaks[i].input == RG_FP32 &&
            accel->peaks[i].rate.known)
            device->vector_peak = accel->peaks[i].rate.value;
    return RG_OK;
}

/* Value of a constant in a file's group; false when the file does not give it. */
static bool find_constant(const rg_accel *accel, const char *group, const char *name, double *out,
                          bool *borrowed)
{
    for (int i = 0; accel && i < accel->fit_count; i++)
        if (strcmp(accel->fit[i].group, group) == 0 && strcmp(accel->fit[i].name, name) == 0) {
            *out = accel->fit[i].value;
            *borrowed = accel->fit[i].borrowed;
            return true;
        }
    return false;
}

/* A group whose constants stand for another's; -1 when there is none. Four-bit products are
 * quantised in one pass, as block-scaled ones are; per-tensor FP8 needs the largest value first. */
static int stand_in(int group, int constant)
{
    if (group == RG_KG_GEMM_NVFP4 &&
        (constant == RG_GEMM_QUANTISE || constant == RG_GEMM_QUANTISE_PASSES))
        return RG_KG_GEMM_FP8_BLOCK;
    return rg_kernel_groups[group].fallback;
}

/* Where a constant is looked for, in order. What the library does is first sought in the same kind
 * of kernel anywhere, what the machine does first on the same machine in any kind. */
static void resolve_constant(rg_kernel_device *device, int group, int at,
                             const rg_accel *const sources[3])
{
    const rg_kernel_constant *constant = &rg_kernel_groups[group].constants[at];
    int chain[RG_KG_COUNT], length = 0;
    for (int g = group; g >= 0; g = stand_in(g, at))
        chain[length++] = g;
    device->c[group][at] = constant->start;
    for (int i = 0; i < 3 * length; i++) {
        const int g = constant->software ? i / 3 : i % length;
        const int s = constant->software ? i % 3 : i / length;
        bool borrowed = false;
        /* Hopper runs mxfp4 experts by Triton, which expands them; with pairs of SMs come kernels
         * that multiply them (TensorRT-LLM, trtllm-gen), launched like any others. */
        if (s > 0 && device->cta_pairs && chain[g] == RG_KG_MOE_W4)
            continue;
        if (!find_constant(sources[s], rg_kernel_groups[chain[g]].name, constant->name,
                           &device->c[group][at], &borrowed))
            continue;
        if (g == 0 && (!device->band_from[group] || s == 0))
            device->band_from[group] = sources[s];
        if (g == 0 && s == 0 && !borrowed)
            device->origin[group] = RG_KO_OWN;
        else if (device->origin[group] == RG_KO_START)
            device->origin[group] = RG_KO_BORROWED;
        return;
    }
}

static void resolve_group(rg_kernel_device *device, int group, const rg_accel *accel,
                          const rg_accel *machine, const rg_accel *software)
{
    device->origin[group] = RG_KO_START;
    for (int i = 0; i < rg_kernel_groups[group].count; i++) {
        const bool library = rg_kernel_groups[group].constants[i].software;
        const rg_accel *const sources[3] = {accel, library ? software : machine,
                                            library ? machine : software};
        resolve_constant(device, group, i, sources);
    }
}

/* Borrowed constants are shares of a peak, and the lender's long products reach its
 * sustained_ratio. A device whose file says what its own sustain is held to that: shares are taken
 * of sustained / sustained_ratio. True where any type is. */
static bool hold_to_sustained(const rg_accel *accel, rg_kernel_device *device)
{
    bool any = false;
    for (int type = 0; type < RG_DTYPE_COUNT; type++) {
        const int group = rg_dtype_bits((rg_dtype)type) > 8.0 ? RG_KG_GEMM_BF16 : RG_KG_GEMM_FP8;
        const rg_peak *peak = rg_accel_peak(accel, (rg_dtype)type);
        if (!peak || !peak->sustained.known || device->origin[group] == RG_KO_OWN)
            continue;
        device->reach[type] =
            fmin(device->peak[type], peak->sustained.value / device->c[group][RG_GEMM_SUSTAINED]);
        any = true;
    }
    return any;
}

static const char *describe(rg_arena *arena, const rg_accel *accel, const rg_kernel_device *device,
                            const lender_row *row, rg_err *err)
{
    int own = 0, borrowed = 0;
    for (int g = 0; g < RG_KG_COUNT; g++) {
        own += device->origin[g] == RG_KO_OWN;
        borrowed += device->origin[g] == RG_KO_BORROWED;
    }
    if (own > 0)
        return rg_arena_printf(
            arena, err, "constants: own fit for %d of %d kernel classes, the rest borrowed%s%s",
            own, RG_KG_COUNT, accel->fit_source ? "; " : "",
            accel->fit_source ? accel->fit_source : "");
    if (borrowed == 0)
        return rg_arena_printf(arena, err,
                               "constants: physical guesses, nothing fitted for %s (%s)",
                               accel->name, accel->arch ? accel->arch : "unknown architecture");
    if (strcmp(row->machine, row->software) == 0)
        return rg_arena_printf(arena, err, "constants borrowed from %s: not validated on %s",
                               accel->fit_borrowed_from ? accel->fit_borrowed_from : row->machine,
                               accel->name);
    return rg_arena_printf(arena, err,
                           "constants borrowed, of the machine from %s, of the kernel library from "
                           "%s: not validated on %s",
                           row->machine, row->software, accel->name);
}

/* A lender's file, or NULL when it is not installed or is the device itself. */
static const rg_accel *load_lender(rg_arena *arena, const rg_accel *accel, const char *name)
{
    rg_accel *lender = NULL;
    if (accel->name && strcmp(accel->name, name) == 0)
        return accel;
    return rg_accel_load(arena, name, &lender, NULL) == RG_OK ? lender : NULL;
}

rg_status rg_kernel_prepare(rg_arena *arena, const rg_accel *accel,
                            const rg_kernel_options *options, rg_kernel_device **out, rg_err *err)
{
    static atomic_uint serials;
    rg_kernel_device *device = RG_NEW(arena, rg_kernel_device, 1, err);
    if (!device)
        return RG_ERR_LIMIT;
    device->name = accel->name;
    device->vendor = accel->vendor;
    if (options)
        device->options = *options;
    device->serial = atomic_fetch_add(&serials, 1) + 1;
    RG_TRY(take_figures(accel, device, err));
    const lender_row *row = lender_of(accel->arch);
    const char *from = device->options.constants_from;
    lender_row chosen = *row;
    if (from)
        chosen.machine = chosen.software = from;
    device->fine_tiles = row->fine;
    device->vector_decode = row->vector;
    device->cta_pairs = device->exp_hidden = device->async_decode = row->pairs;
    device->exp_per_cycle = row->exp;
    /* TensorRT-LLM, fused_moe/routing.py, at 1.0 (the A100's library) and at 1.3 */
    const bool older = accel->arch && strcmp(accel->arch, "ampere") == 0;
    device->routed_experts = older ? 128 : 512;
    device->routed_top_k = older ? 8 : 16;
    device->flash = device->options.attention == RG_ATTENTION_FLASH ||
                    (device->options.attention == RG_ATTENTION_AUTO && accel->arch &&
                     strcmp(accel->arch, "ampere") == 0);
    const bool guesses = from && strcmp(from, "start") == 0;
    const rg_accel *machine = guesses ? NULL : load_lender(arena, accel, chosen.machine);
    const rg_accel *software = guesses ? NULL : load_lender(arena, accel, chosen.software);
    if (from && !guesses && !machine)
        return rg_fail(err, RG_ERR_INPUT, RG_NOWHERE,
                       "no hardware file '%s' to take constants from", from);
    for (int g = 0; g < RG_KG_COUNT; g++)
        resolve_group(device, g, from ? NULL : accel, machine, software);
    device->note = describe(arena, accel, device, &chosen, err);
    if (device->note && hold_to_sustained(accel, device))
        device->note = rg_arena_printf(
            arena, err, "%s; matrix rates held to the sustained ones that its file gives",
            device->note);
    if (!device->note)
        return RG_ERR_LIMIT;
    *out = device;
    return RG_OK;
}

const char *rg_kernel_device_note(const rg_kernel_device *device)
{
    return device->note;
}

rg_status rg_kernel_peak(const rg_kernel_device *device, rg_dtype type, double *out, rg_err *err)
{
    if (!(device->peak[type] > 0.0)) {
        char has[256] = "";
        for (int t = 0; t < RG_DTYPE_COUNT; t++)
            if (device->peak[t] > 0.0) {
                strncat(has, has[0] ? ", " : "", sizeof has - strlen(has) - 1);
                strncat(has, rg_dtype_name((rg_dtype)t), sizeof has - strlen(has) - 1);
            }
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "%s has no matrix rate for '%s'; it multiplies %s, and weight-only formats "
                       "in one of these",
                       device->name, rg_dtype_name(type), has[0] ? has : "nothing that is known");
    }
    *out = device->reach[type] > 0.0 ? device->reach[type] : device->peak[type];
    return RG_OK;
}
