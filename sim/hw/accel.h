/* hw/accel.h: an accelerator as its hardware file describes it.
 *
 * Reads core. One struct for GPUs and systolic-array parts; a figure that the file does not give
 * has known = false, and whoever needs it fails by its name.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_HW_ACCEL_H
#define RG_HW_ACCEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/dtype.h"
#include "core/quantity.h"

/** One figure with where it comes from. SI without prefix, in the dimension of its key. */
typedef struct rg_figure {
    double value;
    rg_dim dim;
    bool known;
    bool assumed;       /* source starts with "assumed" */
    const char *source; /* datasheet with table or page, or "measured: ..." */
    rg_pos pos;
} rg_figure;

/** Dense peak rate for one input and accumulate type. */
typedef struct rg_peak {
    rg_dtype input, accumulate;
    bool matrix;      /* tensor core, MXU, matrix core; false: vector unit */
    rg_figure rate;   /* flop/s, dense, at the boost clock (or the clock named in the file) */
    rg_figure sparse; /* flop/s with 2:4 sparsity, never used unless asked for */
    rg_figure
        ops_per_clock_per_unit; /* flop per clock per SM/CU/MXU; rate = units * this * clock */
    rg_figure sustained; /* flop/s measured under power with random data; unknown by default */
} rg_peak;

/** One level of memory, nearest the arithmetic first: registers, l1 (shared), l2, [l3,] hbm. */
typedef struct rg_memory_level {
    const char *name;
    bool per_unit;             /* capacity and bandwidth are per SM/CU/core */
    rg_figure capacity;        /* byte */
    rg_figure bandwidth;       /* byte/s, spec */
    rg_figure bytes_per_clock; /* byte per clock (per unit when per_unit); bandwidth recomputes */
    rg_figure measured_bandwidth; /* byte/s read, measured */
    rg_figure latency;            /* s */
    rg_figure line;               /* byte */
    rg_figure
        partitions; /* count of separate halves or slices that hold copies (A100, H100 L2: 2) */
} rg_memory_level;

/** One fitted constant: fit: <group>: <name>: value. */
typedef struct rg_fit_constant {
    const char *group; /* "gemm", "attention_decode", "collective", "engine", ... */
    const char *name;
    double value; /* unit is part of the name: t0_us, eta_c_ratio */
    rg_pos pos;
} rg_fit_constant;

typedef struct rg_link_port {     /* NVLink, Infinity Fabric, ICI, PCIe, NIC */
    const char *kind;             /* "nvlink4", "pcie5x16", "ici", "infinity_fabric" */
    int64_t count;                /* links per device */
    rg_figure rate_per_direction; /* byte/s of all links together, one direction */
    rg_figure latency;            /* s */
} rg_link_port;

enum { RG_MAX_PEAKS = 32, RG_MAX_LEVELS = 6, RG_MAX_PORTS = 6 };

typedef struct rg_accel {
    const char *name;      /* "h200-sxm" */
    const char *title;     /* "NVIDIA H200 SXM" */
    const char *vendor;    /* "nvidia", "amd", "google", "intel" */
    const char *arch;      /* "hopper", "ampere", "ada", "blackwell", "cdna3", "tpu-v5e", ... */
    const char *path;      /* file it was read from */
    const char *unit_name; /* "SM", "CU", "MXU", "MME" */
    rg_figure units;
    rg_figure matrix_cores_per_unit;
    rg_figure systolic_rows, systolic_columns;           /* systolic arrays only */
    rg_figure boost_clock, base_clock, sustained_clock;  /* Hz */
    rg_figure max_threads_per_unit, max_blocks_per_unit; /* occupancy limits where known */
    rg_figure tdp;                                       /* W */
    rg_figure idle_power;                                /* W, often assumed */
    rg_peak peaks[RG_MAX_PEAKS];
    int peak_count;
    rg_memory_level levels[RG_MAX_LEVELS];
    int level_count;
    rg_link_port ports[RG_MAX_PORTS];
    int port_count;
    rg_figure noc_bandwidth; /* byte/s, units to L2, all together */
    const char *noc_file;    /* on-chip network description, NULL when none */
    const rg_fit_constant *fit;
    int fit_count;
    const char *fit_source;        /* date, data, rows, error of the fit; NULL when not fitted */
    const char *fit_borrowed_from; /* device whose constants are used, NULL for its own or none */
} rg_accel;

/** Load by name ("h200-sxm", looked up in the hardware folders) or by path. A name that stands for
 * several variants ("h100") is refused with the list. */
rg_status rg_accel_load(rg_arena *arena, const char *name_or_path, rg_accel **out, rg_err *err);

/** The dense matrix peak for an input type (accumulating in fp32/int32); NULL when there is none.
 */
const rg_peak *rg_accel_peak(const rg_accel *accel, rg_dtype input);
/** The level by name, NULL when absent. The last level is device memory. */
const rg_memory_level *rg_accel_level(const rg_accel *accel, const char *name);
static inline const rg_memory_level *rg_accel_memory(const rg_accel *accel)
{
    return &accel->levels[accel->level_count - 1];
}
/** Fitted constant, or fallback when the file has none; *own tells which (may be NULL). */
double rg_accel_fit_or(const rg_accel *accel, const char *group, const char *name, double fallback,
                       bool *own);

#endif
