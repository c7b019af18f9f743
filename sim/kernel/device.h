/* kernel/device.h: a device as the kernel models see it: figures in cycles and bytes, constants.
 *
 * Reads kernel/constant.h, kernel/kernel.h. Shared by the .c files of this folder and by fit, which
 * changes constants in place; nobody else looks inside.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNEL_DEVICE_H
#define RG_KERNEL_DEVICE_H

#include "kernel/constant.h"
#include "kernel/kernel.h"

/** Where the constants of a group come from. */
typedef enum rg_kernel_origin {
    RG_KO_START,    /* nothing fitted: physical guesses */
    RG_KO_BORROWED, /* another device's, or another group's */
    RG_KO_OWN,
} rg_kernel_origin;

struct rg_kernel_device {
    const char *name;
    const char *note;
    rg_kernel_options options;
    double units;                 /* SMs, CUs, cores */
    double hz;                    /* boost clock */
    double memory_rate;           /* byte/s */
    double memory_latency;        /* s until the first bytes are there */
    double l2_bytes;              /* 0: none known */
    double l2_room;               /* byte that differ: L2 over its partitions, which hold copies */
    double l2_rate;               /* byte/s of reads that hit, all units together */
    double peak[RG_DTYPE_COUNT];  /* flop/s, dense, matrix units; 0: not supported */
    double reach[RG_DTYPE_COUNT]; /* peak that borrowed shares of it hold for; 0: the peak itself */
    double vector_peak;           /* flop/s, fp32 */
    bool fine_tiles;              /* tiles in steps of 8 rows, loads shared in clusters */
    int64_t routed_experts, routed_top_k; /* most that the library's routing kernel takes */
    bool cta_pairs;                       /* two SMs share a tile: each loads half of its columns */
    bool exp_hidden;                      /* exponentials run beside products, not between them */
    double exp_per_cycle;                 /* exponentials of one SM */
    double shared_bytes_per_cycle;        /* that one SM reads from its shared memory */
    bool async_decode;  /* decode kernels of 16-bit caches load asynchronously too */
    bool flash;         /* decode attention by split-KV flash attention, not XQA */
    bool vector_decode; /* the library falls back to a kernel without matrix units */
    double c[RG_KG_COUNT][RG_KC_MAX];
    rg_kernel_origin origin[RG_KG_COUNT];
    const rg_accel *band_from[RG_KG_COUNT]; /* whose stored bands hold for a group; NULL: none */
    const char *vendor;
    unsigned serial; /* tells devices apart in per-thread memories of recent shapes */
};

/** Parts of a time while it is being put together, in s. */
typedef struct rg_kernel_parts {
    double fixed, compute, memory, l2, total;
    const char *choice;
} rg_kernel_parts;

rg_status rg_kernel_gemm(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                         rg_err *err);
rg_status rg_kernel_prefill(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                            rg_err *err);
rg_status rg_kernel_decode(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                           rg_err *err);
rg_status rg_kernel_mla(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                        rg_err *err);
rg_status rg_kernel_moe(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                        rg_err *err);
rg_status rg_kernel_stream(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                           rg_err *err);

/** Dense matrix peak of a type, as the constants take shares of it; RG_ERR_MODEL with the type's
 * and the device's name when the device has none. */
rg_status rg_kernel_peak(const rg_kernel_device *device, rg_dtype type, double *out, rg_err *err);

rg_kernel_group rg_kernel_gemm_group(const rg_op_gemm *shape);
rg_kernel_group rg_kernel_moe_group(const rg_op_moe *shape);
/** Constants group of an operator (which kernel of the library runs it). */
rg_kernel_group rg_kernel_group_of(const rg_op *op);

/** Bytes of one element of a cache, with its share of scales. */
double rg_kernel_kv_bytes(const rg_op_attention *a);
/** A step of flash attention over its tile of query rows, which few query tokens do not fill. */
typedef struct rg_flash_step {
    double rows, keys; /* of a tile, of a step */
    double cycles;     /* of an SM, with all its tiles at work */
    double ends;       /* start and end of a tile */
    double alone;      /* times that, where a tile has the SM to itself */
    double resident;   /* tiles on an SM */
} rg_flash_step;
rg_status rg_kernel_flash_step(const rg_kernel_device *device, const rg_op *op, rg_flash_step *out,
                               rg_err *err);
/** Cycles of one SM in which flash attention's library writes `elements` keys of one token, and as
 * many values, into the cache; c: constants of prefill. */
double rg_kernel_write_cycles(const double *c, double elements);
/** (a^p + b^p)^(1/p) for a, b >= 0: p = 1 adds, large p takes the larger. */
double rg_kernel_join(double a, double b, double p);
/** Share of repeated reads that hit: 1 / (1 + (footprint / room)^4), so half at footprint = room.
 */
double rg_kernel_hit_ratio(double footprint, double room);

/** ceil and floor of a positive number below 2^62 without a call: the baseline x86-64 has no
 * instruction for them, and the tile search lives on them. */
static inline double rg_kernel_up(double x)
{
    const double whole = (double)(int64_t)x;
    return whole < x ? whole + 1.0 : whole;
}
static inline double rg_kernel_down(double x)
{
    return (double)(int64_t)x;
}

#endif
