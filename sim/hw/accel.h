/* hw/accel.h: an accelerator as its hardware file describes it.
 *
 * Reads core, hw/figure.h. One struct for GPUs and systolic-array parts; a figure that the file
 * does not give has known = false, and whoever needs it fails by its name.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_HW_ACCEL_H
#define RG_HW_ACCEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/dtype.h"
#include "core/quantity.h"
#include "hw/figure.h"

/** Dense peak rate for one input and accumulate type. */
typedef struct rg_peak {
    const char *name; /* "bf16_fp32" */
    rg_dtype input, accumulate;
    bool matrix;      /* tensor core, MXU, matrix core; false: vector unit */
    rg_figure rate;   /* flop/s, dense, at the peak's own clock, else the boost clock */
    rg_figure sparse; /* flop/s with 2:4 sparsity, never used unless asked for */
    rg_figure
        ops_per_clock_per_unit; /* flop per clock per SM/CU/MXU; rate = units * this * clock */
    rg_figure clock;            /* Hz at which the rate is quoted, when it is not the boost clock */
    rg_figure sustained; /* flop/s measured under power with random data; unknown by default */
    rg_pos pos;
} rg_peak;

/** One level of memory, nearest the arithmetic first: registers, l1 (shared), l2, [l3,] hbm. */
typedef struct rg_memory_level {
    const char *name;
    bool per_unit;             /* capacity and bandwidth are per SM/CU/core */
    rg_figure capacity;        /* byte, as the datasheet prints it */
    rg_figure usable;          /* byte that software gets (what the driver reports) */
    rg_figure shared;          /* byte of an L1 that a program may use as shared memory */
    rg_figure bandwidth;       /* byte/s, spec */
    rg_figure bytes_per_clock; /* byte per clock (per unit when per_unit); bandwidth recomputes */
    rg_figure clock;           /* Hz of bytes_per_clock, when it is not the boost clock */
    rg_figure bus_width;       /* bits, device memory */
    rg_figure pin_rate;        /* byte/s per pin; bandwidth = bus_width * pin_rate */
    rg_figure measured_bandwidth; /* byte/s read, measured, all units together */
    rg_figure latency;            /* s, from the arithmetic to this level and back */
    rg_figure line;               /* byte */
    rg_figure
        partitions; /* count of separate halves or slices that hold copies (A100, H100 L2: 2) */
    rg_pos pos;
} rg_memory_level;

/** One fitted constant: fit: <group>: <name>: value. A group within a group is "outer.inner". */
typedef struct rg_fit_constant {
    const char *group; /* "gemm", "attention_decode", "collective", "engine", ... */
    const char *name;
    double value; /* unit is part of the name: t0_us, eta_c_ratio */
    rg_pos pos;
    bool borrowed; /* comes from the file that fit: {borrow: ...} names */
} rg_fit_constant;

typedef struct rg_link_port {     /* NVLink, Infinity Fabric, ICI, PCIe, NIC */
    const char *kind;             /* "nvlink4", "pcie5x16", "ici", "infinity_fabric" */
    int64_t count;                /* links per device */
    rg_figure links;              /* count, with its source */
    rg_figure rate_per_link;      /* byte/s of one link, one direction */
    rg_figure rate_per_direction; /* byte/s of all links together, one direction */
    rg_figure latency;            /* s */
    rg_pos pos;
} rg_link_port;

enum { RG_MAX_PEAKS = 32, RG_MAX_LEVELS = 6, RG_MAX_PORTS = 6 };

typedef struct rg_accel {
    const char *name;       /* "h200-sxm" */
    const char *title;      /* "NVIDIA H200 SXM" */
    const char *vendor;     /* "nvidia", "amd", "google", "intel" */
    const char *arch;       /* "hopper", "ampere", "ada", "blackwell", "cdna3", "tpu-v5e", ... */
    const char *path;       /* file it was read from */
    const char *base;       /* device that the file changes, NULL when it stands alone */
    const char *note;       /* what a reader should know, NULL for none */
    const char *usual_node; /* node or cluster that a bare device name means, NULL for none */
    const char *unit_name;  /* "SM", "CU", "MXU", "MME" */
    rg_figure units;
    rg_figure matrix_cores_per_unit;
    rg_figure systolic_rows, systolic_columns;           /* systolic arrays only */
    rg_figure boost_clock, base_clock, sustained_clock;  /* Hz */
    rg_figure max_threads_per_unit, max_blocks_per_unit; /* occupancy limits where known */
    rg_figure registers_per_unit;                        /* 32-bit registers */
    rg_figure exp_per_clock_per_unit; /* exponentials per clock of the special-function units */
    rg_figure tdp;                    /* W */
    rg_figure idle_power;             /* W, often assumed */
    rg_peak peaks[RG_MAX_PEAKS];
    int peak_count;
    rg_memory_level levels[RG_MAX_LEVELS];
    int level_count;
    rg_link_port ports[RG_MAX_PORTS];
    int port_count;
    rg_figure noc_bandwidth; /* byte/s, units to L2, all together */
    const char *noc_file;    /* its on-chip network: a name in hw/noc, or a path; NULL when none */
    const rg_fit_constant *fit;
    int fit_count;
    const char *fit_source;        /* date, data, rows, error of the fit; NULL when not fitted */
    const char *fit_borrowed_from; /* device whose constants are used, NULL for its own or none */
} rg_accel;

/** Load by name ("h200-sxm", looked up in the hardware folders) or by path. A name that stands for
 * several variants ("h100") is refused with the list. A file with base: NAME starts from that
 * device and replaces what it gives. Errors: RG_ERR_USAGE for a name that is not known,
 * RG_ERR_INPUT at the place of a mistake in the file, RG_ERR_IO, RG_ERR_LIMIT. */
rg_status rg_accel_load(rg_arena *arena, const char *name_or_path, rg_accel **out, rg_err *err);
/** The same from a parsed document, for tests and tools; path stands in messages. */
rg_status rg_accel_read(rg_arena *arena, const char *path, rg_node *root, rg_accel **out,
                        rg_err *err);

/** The dense matrix peak for an input type (accumulating in fp32/int32); NULL when there is none.
 */
const rg_peak *rg_accel_peak(const rg_accel *accel, rg_dtype input);
/** Any peak by input and accumulate type, matrix or vector; NULL when there is none. */
const rg_peak *rg_accel_peak_of(const rg_accel *accel, bool matrix, rg_dtype input,
                                rg_dtype accumulate);
/** The level by name, NULL when absent. The last level is device memory, and also goes by "hbm" and
 * "memory" whatever it is made of. */
const rg_memory_level *rg_accel_level(const rg_accel *accel, const char *name);
static inline const rg_memory_level *rg_accel_memory(const rg_accel *accel)
{
    return &accel->levels[accel->level_count - 1];
}
/** Bytes of device memory that software gets: what the driver reports where the file says so, else
 * the datasheet's capacity. */
static inline double rg_accel_memory_bytes(const rg_accel *accel)
{
    const rg_memory_level *memory = rg_accel_memory(accel);
    return memory->usable.known ? memory->usable.value : memory->capacity.value;
}
/** Bandwidth of a level over the whole device, byte/s: the stated one, else bytes per clock (times
 * the units when per unit) at its clock, else the measured one; 0 when the file gives none. */
double rg_accel_level_bandwidth(const rg_accel *accel, const rg_memory_level *level);
/** Bytes of a level over the whole device; 0 when the file does not say. */
double rg_accel_level_bytes(const rg_accel *accel, const rg_memory_level *level);
/** Clock at which a peak is quoted, Hz. */
double rg_accel_peak_clock(const rg_accel *accel, const rg_peak *peak);

/** Fitted constant, or fallback when the file has none; *own tells whether it was fitted on this
 * device: false for the fallback and for a borrowed one (may be NULL). */
double rg_accel_fit_or(const rg_accel *accel, const char *group, const char *name, double fallback,
                       bool *own);

/** Every known figure under its path ("memory.l2.bandwidth", "peaks.matrix.bf16_fp32.rate"), in the
 * order of the tables; changing one through the list changes accel. */
rg_status rg_accel_figures(rg_arena *arena, rg_accel *accel, const rg_named_figure **out,
                           int *count, rg_err *err);

#endif
