/* kernel/kernel.h: time of one operator on one device, by mechanism.
 *
 * Reads hw/accel.h, model/op.h, roofline. One interface: prepare a device once, then ask for many
 * operators. Nothing is allocated per operator.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNEL_KERNEL_H
#define RG_KERNEL_KERNEL_H

#include "hw/accel.h"
#include "model/op.h"

typedef enum rg_bound {
    RG_BOUND_COMPUTE,
    RG_BOUND_MEMORY, /* device memory */
    RG_BOUND_L2,
    RG_BOUND_L1,
    RG_BOUND_FIXED, /* launch, latency: neither compute nor bytes */
    RG_BOUND_LINK,
    RG_BOUND_COUNT,
} rg_bound;
const char *rg_bound_name(rg_bound bound);

/** Library whose attention kernels run. */
typedef enum rg_attention_library {
    RG_ATTENTION_AUTO,   /* the one that the device's constants were fitted on */
    RG_ATTENTION_TRTLLM, /* XQA and a vector kernel for decode; RoPE and cache write are in it */
    RG_ATTENTION_FLASH,  /* flash attention with its cache write; RoPE is another operator */
} rg_attention_library;

/** Whose kernels run block-scaled experts. */
typedef enum rg_expert_library {
    RG_EXPERTS_GROUPED, /* one resident grouped product, as in the measured tables (DeepGEMM) */
    RG_EXPERTS_TRITON,  /* Triton's fused kernel: several tiles an SM, none for idle experts */
} rg_expert_library;

typedef struct rg_kernel_options {
    bool ideal;          /* all efficiencies 1 and no fixed cost: the bare roofline, exactly */
    bool sustained;      /* long runs under the power cap rather than bursts */
    bool cold_l2;        /* operands come from device memory even if they would fit in L2 */
    bool no_quantise;    /* dynamic quantisation of X is fused elsewhere and not counted */
    bool core_attention; /* attention alone: RoPE, QKV preparation, cache write are elsewhere */
    int weight_copies; /* copies of W that repeats of a product cycle through; 0: 1 to 5, as many as
                        * fill L2 */
    rg_attention_library attention;
    rg_expert_library experts;
    const char *constants_from; /* take all constants from this device's file, or "start": the
                                 * physical guesses; NULL: see rg_kernel_prepare */
} rg_kernel_options;

typedef struct rg_kernel_device rg_kernel_device; /* constants of one device, resolved */

/** Resolve the constants for a device: its own fit, else its architecture's, else defaults; notes
 * in words through rg_kernel_device_note. Errors: RG_ERR_MODEL when a needed figure is missing. */
rg_status rg_kernel_prepare(rg_arena *arena, const rg_accel *accel,
                            const rg_kernel_options *options, rg_kernel_device **out, rg_err *err);
/** "constants: own fit ..." or "constants borrowed from h200-sxm (hopper): not validated here". */
const char *rg_kernel_device_note(const rg_kernel_device *device);

typedef struct rg_kernel_time {
    rg_seconds total;
    rg_seconds roofline;                   /* max(flops/peak, bytes/bandwidth), no efficiency */
    rg_seconds products;                   /* flops/peak: least time that they take */
    rg_seconds fixed, compute, memory, l2; /* parts, before they overlap */
    rg_bound bound;
    const char *choice; /* tile or algorithm picked, for people; static text or NULL */
} rg_kernel_time;

/** Time of ONE operator (op->count is not applied). */
rg_status rg_kernel_op_time(const rg_kernel_device *device, const rg_op *op, rg_kernel_time *out,
                            rg_err *err);

/** What stored validation says of predictions like one. */
typedef enum rg_band_basis {
    RG_BAND_NONE,      /* nothing: the prediction is not validated */
    RG_BAND_VALIDATED, /* this device, rows that were not fitted */
    RG_BAND_CARRIED,   /* another device with the same lent constants: not validated on this one */
} rg_band_basis;

typedef struct rg_band {
    rg_band_basis basis;
    double median, p90, bias; /* of |predicted / measured - 1|; bias: median of the signed error */
    const char *size_class;   /* rows that it was taken over: "m<=16", "len>=1024", "all" */
} rg_band;

/** The band that covers an operator: of its group and size class, else of its group; none for an
 * operator with over 4 times more, or less, work than any that was measured. */
rg_band rg_kernel_band(const rg_kernel_device *device, const rg_op *op);
/** The size class under which an operator's errors are kept; static text. */
const char *rg_kernel_size_class(const rg_op *op);

#endif
