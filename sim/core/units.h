/* core/units.h: struct types for the quantities that cross boundaries.
 *
 * Reads nothing. Always SI without prefixes: s, byte, flop, byte/s, flop/s, Hz, W, J, dollar.
 * The compiler refuses time where bytes belong; the built code is that of plain doubles.
 * Open .v inside one formula and close it again on the way out.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_UNITS_H
#define RG_CORE_UNITS_H

typedef struct {
    double v;
} rg_seconds;
typedef struct {
    double v;
} rg_bytes;
typedef struct {
    double v;
} rg_flops;
typedef struct {
    double v;
} rg_byte_rate; /* bytes per second */
typedef struct {
    double v;
} rg_flop_rate; /* flop per second */
typedef struct {
    double v;
} rg_hertz;
typedef struct {
    double v;
} rg_watts;
typedef struct {
    double v;
} rg_joules;
typedef struct {
    double v;
} rg_dollars;

#define RG_S(x) ((rg_seconds){(x)})
#define RG_B(x) ((rg_bytes){(x)})
#define RG_F(x) ((rg_flops){(x)})
#define RG_BPS(x) ((rg_byte_rate){(x)})
#define RG_FPS(x) ((rg_flop_rate){(x)})
#define RG_HZ(x) ((rg_hertz){(x)})
#define RG_W(x) ((rg_watts){(x)})
#define RG_J(x) ((rg_joules){(x)})
#define RG_USD(x) ((rg_dollars){(x)})

static inline rg_seconds rg_s_add(rg_seconds a, rg_seconds b)
{
    return RG_S(a.v + b.v);
}
static inline rg_seconds rg_s_max(rg_seconds a, rg_seconds b)
{
    return a.v > b.v ? a : b;
}
static inline rg_seconds rg_s_scale(rg_seconds a, double factor)
{
    return RG_S(a.v * factor);
}
static inline rg_bytes rg_b_add(rg_bytes a, rg_bytes b)
{
    return RG_B(a.v + b.v);
}
/** Time to move bytes at a rate; the rate must be positive. */
static inline rg_seconds rg_move_time(rg_bytes bytes, rg_byte_rate rate)
{
    return RG_S(bytes.v / rate.v);
}
/** Time to compute at a rate; the rate must be positive. */
static inline rg_seconds rg_compute_time(rg_flops flops, rg_flop_rate rate)
{
    return RG_S(flops.v / rate.v);
}

#endif
