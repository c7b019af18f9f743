/* kernels/collective.cu: all-reduce by one shot, two shots and a ring, all-to-all; their reference.
 *
 * Reads collective.h, dev.h. With n ranks, S bytes each, bandwidth B one way: one shot reads
 * (n-1) S of the peers and waits twice; two shots (reduce-scatter, then gather) move 2 (n-1)/n S
 * and wait three times; the ring moves the same in 2 (n-1) steps that wait for one neighbour each.
 * Block b of a rank shares elements only with block b of the others, so a barrier joins blocks of
 * one number.
 */
// SPDX-License-Identifier: Apache-2.0
#include "collective.h"

#ifdef RG_HOST

void rg_allreduce_reference(const double *const *in, int32_t ranks, int64_t count, double *out)
{
    for (int64_t i = 0; i < count; i++) {
        out[i] = 0;
        for (int32_t r = 0; r < ranks; r++)
            out[i] += in[r][i];
    }
}

#else
#include "dev.h"

/** This block's place, and the count that its flags have reached. */
struct member {
    int rank, block;
    uint32_t count;
};

RG_DEVICE member join(const rg_collective_params &p)
{
    member m;
    m.rank = p.rank >= 0 ? p.rank : RG_BID / p.blocks;
    m.block = p.rank >= 0 ? RG_BID : RG_BID % p.blocks;
    m.count = p.epochs[m.rank][m.block];
    return m;
}

RG_DEVICE void leave(const rg_collective_params &p, const member &m)
{
    if (RG_TID == 0)
        p.epochs[m.rank][m.block] = m.count;
}

/** Wait until a rank has told this block that it reached the count. Counts wrap. */
RG_DEVICE void wait_for(const rg_collective_params &p, const member &m, int from, uint32_t count)
{
    const uint32_t *flag = p.flags[m.rank] + m.block * p.ranks + from;
    while ((int32_t)(rg_flag_acquire(flag) - count) < 0) {
    }
}

RG_DEVICE void tell(const rg_collective_params &p, const member &m, int to, uint32_t count)
{
    rg_flag_release(p.flags[to] + m.block * p.ranks + m.rank, count);
}

/** All blocks of this number, on all ranks. */
RG_DEVICE void barrier(const rg_collective_params &p, member *m)
{
    m->count++;
    rg_sync();
    if (RG_TID < p.ranks) {
        tell(p, *m, RG_TID, m->count);
        wait_for(p, *m, RG_TID, m->count);
    }
    rg_sync();
}

/** Sums of one 16-byte vector in fp32. */
template <rg_store store>
struct vector_sum {
    static constexpr int count = store == RG_STORE_BF16 ? 8 : 4;
    float x[count];

    RG_DEVICE_MEMBER void set(uint4 v)
    {
        const uint32_t w[4] = {v.x, v.y, v.z, v.w};
        RG_UNROLL
        for (int i = 0; i < 4; i++) {
            if constexpr (store == RG_STORE_BF16) {
                x[2 * i] = rg_bits_float(w[i] << 16);
                x[2 * i + 1] = rg_bits_float(w[i] & 0xffff0000u);
            } else {
                x[i] = rg_bits_float(w[i]);
            }
        }
    }
    RG_DEVICE_MEMBER void add(uint4 v)
    {
        vector_sum other;
        other.set(v);
        RG_UNROLL
        for (int i = 0; i < count; i++)
            x[i] += other.x[i];
    }
    RG_DEVICE_MEMBER uint4 get() const
    {
        uint32_t w[4];
        RG_UNROLL
        for (int i = 0; i < 4; i++) {
            if constexpr (store == RG_STORE_BF16)
                w[i] = rg_pack_bf16(x[2 * i], x[2 * i + 1]);
            else
                w[i] = rg_float_bits(x[i]);
        }
        return make_uint4(w[0], w[1], w[2], w[3]);
    }
};

/** Sum of one vector over all ranks, in the order of ranks, so that every rank gets the same bits.
 */
template <rg_store store>
RG_DEVICE uint4 sum_over_ranks(const rg_collective_params &p, int64_t i)
{
    vector_sum<store> sum;
    sum.set(rg_load_l2(p.in[0] + 16 * i));
    for (int r = 1; r < p.ranks; r++)
        sum.add(rg_load_l2(p.in[r] + 16 * i));
    return sum.get();
}

template <rg_store store>
RG_DEVICE void one_shot(const rg_collective_params &p)
{
    member m = join(p);
    const int64_t step = (int64_t)p.blocks * RG_COLLECTIVE_THREADS;
    barrier(p, &m);
    for (int64_t i = (int64_t)m.block * RG_COLLECTIVE_THREADS + RG_TID; i < p.vectors; i += step)
        rg_store16(p.out[m.rank] + 16 * i, sum_over_ranks<store>(p, i));
    barrier(p, &m); /* nobody reads this rank's input any more */
    leave(p, m);
}

template <rg_store store>
RG_DEVICE void two_shot(const rg_collective_params &p)
{
    member m = join(p);
    const int64_t step = (int64_t)p.blocks * RG_COLLECTIVE_THREADS;
    const int64_t start = (int64_t)m.block * RG_COLLECTIVE_THREADS + RG_TID;
    barrier(p, &m);
    const int64_t first = rg_part_first(p.vectors, m.rank, p.ranks);
    const int64_t last = rg_part_first(p.vectors, m.rank + 1, p.ranks);
    for (int64_t i = first + start; i < last; i += step)
        rg_store16(p.work[m.rank] + 16 * i, sum_over_ranks<store>(p, i));
    barrier(p, &m);
    for (int turn = 0; turn < p.ranks; turn++) { /* each rank begins with another peer */
        const int from = (m.rank + turn) % p.ranks;
        const int64_t end = rg_part_first(p.vectors, from + 1, p.ranks);
        for (int64_t i = rg_part_first(p.vectors, from, p.ranks) + start; i < end; i += step)
            rg_store16(p.out[m.rank] + 16 * i, rg_load_l2(p.work[from] + 16 * i));
    }
    barrier(p, &m); /* nobody reads this rank's work any more */
    leave(p, m);
}

template <rg_store store>
RG_DEVICE void ring(const rg_collective_params &p)
{
    member m = join(p);
    const int64_t step = (int64_t)p.blocks * RG_COLLECTIVE_THREADS;
    const int64_t start = (int64_t)m.block * RG_COLLECTIVE_THREADS + RG_TID;
    const int n = p.ranks, next = (m.rank + 1) % n, before = (m.rank + n - 1) % n;
    barrier(p, &m);
    for (int s = 0; s < 2 * (n - 1); s++) {
        const bool gather = s >= n - 1;
        /* part that comes from the rank before: it finished it in its own step s - 1 */
        const int part = (gather ? m.rank - (s - (n - 1)) + n : m.rank - s - 1 + n) % n;
        const uint8_t *from = gather ? p.out[before] : (s == 0 ? p.in[before] : p.work[before]);
        uint8_t *to = s >= n - 2 ? p.out[m.rank] : p.work[m.rank];
        if (s > 0 && RG_TID == 0)
            wait_for(p, m, before, m.count);
        rg_sync();
        const int64_t end = rg_part_first(p.vectors, part + 1, n);
        for (int64_t i = rg_part_first(p.vectors, part, n) + start; i < end; i += step) {
            uint4 v = rg_load_l2(from + 16 * i);
            if (!gather) {
                vector_sum<store> sum;
                sum.set(v);
                sum.add(rg_load_l2(p.in[m.rank] + 16 * i));
                v = sum.get();
            }
            rg_store16(to + 16 * i, v);
        }
        m.count++;
        rg_sync();
        if (RG_TID == 0)
            tell(p, m, next, m.count);
    }
    barrier(p, &m);
    leave(p, m);
}

#define RG_COLLECTIVE(name, body)                                   \
    RG_KERNEL(name, rg_collective_params, RG_COLLECTIVE_THREADS, 2) \
    {                                                               \
        body(p);                                                    \
    }

RG_COLLECTIVE(rg_allreduce_one_shot_bfloat16, one_shot<RG_STORE_BF16>)
RG_COLLECTIVE(rg_allreduce_two_shot_bfloat16, two_shot<RG_STORE_BF16>)
RG_COLLECTIVE(rg_allreduce_ring_bfloat16, ring<RG_STORE_BF16>)
RG_COLLECTIVE(rg_allreduce_one_shot_float32, one_shot<RG_STORE_FP32>)
RG_COLLECTIVE(rg_allreduce_two_shot_float32, two_shot<RG_STORE_FP32>)
RG_COLLECTIVE(rg_allreduce_ring_float32, ring<RG_STORE_FP32>)

/** Part r of rank j's input becomes part j of rank r's output; vectors divides by ranks. */
RG_KERNEL(rg_all_to_all, rg_collective_params, RG_COLLECTIVE_THREADS, 2)
{
    member m = join(p);
    const int64_t step = (int64_t)p.blocks * RG_COLLECTIVE_THREADS;
    const int64_t part = p.vectors / p.ranks;
    barrier(p, &m);
    for (int turn = 0; turn < p.ranks; turn++) {
        const int from = (m.rank + turn) % p.ranks;
        for (int64_t i = (int64_t)m.block * RG_COLLECTIVE_THREADS + RG_TID; i < part; i += step)
            rg_store16(p.out[m.rank] + 16 * (from * part + i),
                       rg_load_l2(p.in[from] + 16 * (m.rank * part + i)));
    }
    barrier(p, &m);
    leave(p, m);
}

#endif
