/* noc/state.h: the state of a running simulation; private to noc/.
 *
 * Reads noc/sim.h. Everything is an index into flat arrays. An input VC is port << vc_shift | vc,
 * an output VC likewise; behind the router ports come one port per node: as output VC the source
 * side of the injection channel, as input VC the sink. What is in flight lies in timing wheels, one
 * bucket a cycle. VCs that want something are bits of their input port, and such ports bits of a
 * set, so what idles costs next to nothing.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_STATE_H
#define RG_NOC_STATE_H

#include "core/rng.h"
#include "noc/knuth.h"
#include "noc/sim.h"

#define RG_NOC_NONE UINT32_MAX

enum { FLIT_TAIL = 1, FLIT_HEAD = 2 }; /* low bits of a flit; the rest is its packet */

enum {
    PACKET_RECORD = 1,
    PACKET_UPPER = 2,      /* torus: starts this dimension at the higher digit */
    PACKET_SECOND_LEG = 4, /* Valiant, ROMM */
    PACKET_WRITE = 8,
    PACKET_DESCENDING = 16, /* highest dimension first */
    PACKET_ESCAPED = 32,    /* adaptive: stays on escape VCs */
};

typedef struct packet {
    uint32_t destination, source;
    uint32_t birth, entered; /* cycle */
    uint32_t link;           /* next in its source queue; in the network: arrival of the head */
    uint32_t middle;         /* Valiant, ROMM: node on the way */
    uint32_t out, mask;      /* where it goes at the router it is sent to; unused by tables */
    uint32_t send;           /* index in the trace */
    uint16_t length, arrived, hops;
    uint8_t kind; /* 2 * class + is a reply */
    uint8_t flags;
} packet;

typedef struct input_vc {
    uint32_t out;         /* output port of the packet in front */
    uint32_t mask;        /* VCs that it may take there */
    uint32_t ovc;         /* output VC that it owns, NONE before VC allocation */
    uint32_t va_ptr;      /* round robin of the input stage of VC allocation: output VC */
    uint32_t ready;       /* slow pipelines: cycle from which the front may bid for the switch */
    uint16_t head, count; /* ring of flits */
    uint32_t offer;       /* speculation: output VC that VC allocation gives it in this cycle */
    uint32_t base;        /* of its ring */
} input_vc;

typedef struct output_vc {
    uint32_t owner; /* input VC, NONE: free or a source's */
    uint32_t ptr;   /* round robin of the output stage of VC allocation: input VC */
    uint32_t best;  /* winner so far in this cycle */
    uint16_t credits;
    uint16_t tail_sent; /* wait_for_tail_credit */
} output_vc;

typedef struct output_port {
    uint32_t free;   /* VCs that no packet owns */
    uint32_t ptr;    /* round robin of the output stage: input VC of the port after the winner */
    uint32_t best;   /* input VC that wins so far in this cycle */
    uint32_t target; /* input VC 0 at the other end */
    uint32_t delay;  /* cycles from grant to use there */
    uint32_t period, busy_until;
    uint32_t flits;
} output_port;

typedef struct input_port {
    uint32_t ptr;          /* round robin of the input stage of switch allocation: output port */
    uint32_t rr;           /* round robin among VCs that want the same output */
    uint32_t upstream;     /* output VC 0 that feeds it */
    uint32_t credit_delay; /* cycles from grant to use upstream */
    uint32_t heads, bids;  /* VCs whose head asks for an output VC; VCs that bid for the switch */
    const uint32_t *row;   /* of its router in the routing table */
} input_port;

typedef struct flit_event {
    uint32_t target, flit;
} flit_event;

/* Two-level set; a summary bit stands for 64 members and is cleared by the scan that finds its word
 * empty. */
typedef struct bit_set {
    uint64_t *word, *summary;
    uint32_t words, summaries;
} bit_set;

static inline void bit_set_add(bit_set *set, uint32_t i)
{
    set->word[i >> 6] |= UINT64_C(1) << (i & 63);
    set->summary[i >> 12] |= UINT64_C(1) << (i >> 6 & 63);
}
/* Summary bits are cleared by the next scan. */
static inline void bit_set_remove(bit_set *set, uint32_t i)
{
    set->word[i >> 6] &= ~(UINT64_C(1) << (i & 63));
}

typedef struct source {
    uint32_t current; /* packet that is going in, NONE */
    uint32_t sent;    /* its flits so far */
    uint32_t vc, last_vc;
    uint32_t queue, queue_last; /* replies and trace packets that wait, linked */
    uint32_t calendar_next;
    bool in_calendar;
    uint64_t birth;   /* of the next drawn packet */
    double gap_scale; /* 1 / log(1 - rate); 0: every cycle */
} source;

typedef struct tally {
    int64_t count;
    double sum;
    uint32_t least, most;
    uint32_t *bucket;
} tally;

typedef struct wake_item {
    uint64_t time;
    uint32_t send;
} wake_item;

/* Messages of a trace. */
typedef struct stream {
    int64_t *order_first; /* [sends + 1] into orders, sorted by what comes before */
    const rg_noc_order *orders;
    uint32_t *waits;  /* [sends] messages that must arrive first */
    uint64_t *birth;  /* [sends] earliest so far, then the cycle in which it may start */
    uint64_t *finish; /* [sends] */
    int32_t *to_send, *to_arrive; /* [sends] flits */
    uint32_t *next;               /* [sends] links of the source queues */
    wake_item *wake;              /* heap of those that wait for their cycle */
    int64_t wake_count, left;
} stream;

enum { TALLY_EXACT = 2048, TALLY_STEPS = 128, TALLY_BUCKETS = TALLY_EXACT + 21 * TALLY_STEPS };
enum { CALENDAR = 1024, BATCHES = 64 };

/* Natural logarithm by table and series, in plain arithmetic, so that no libm decides a result. */
enum { LOG_STEPS = 128 };
typedef struct log_table {
    double inverse[LOG_STEPS], logarithm[LOG_STEPS];
} log_table;

struct rg_noc_sim {
    const rg_noc_config *config;
    const rg_noc_graph *graph;
    rg_arena *arena;
    uint32_t now;

    uint32_t vcs, vc_shift, buffer, ring_mask; /* rings have the next power of two */
    uint32_t inputs, outputs, nodes;           /* router ports and nodes */
    input_port *input;                         /* [inputs + nodes] */
    input_vc *ivc;                             /* [inputs << shift] */
    uint32_t *ring;                            /* [inputs << shift][ring_mask + 1] flits */
    output_port *output;                       /* [outputs + nodes] */
    output_vc *ovc;                            /* [(outputs + nodes) << shift] */

    uint64_t *busy; /* [words] input ports with heads or bids, and some that had */
    uint32_t busy_words;
    uint32_t *va_won, va_count;  /* output VCs with a winner in this cycle */
    uint32_t *sa_won, sa_count;  /* outputs with a winner in this cycle */
    uint32_t va_first, sa_first; /* winners that move the arbiters' pointers */
    void *alloc;                 /* scratch of the slower allocators */

    uint32_t wheel_mask;
    flit_event *flit_wheel, **flit_end; /* buckets and the end of what each holds */
    uint32_t flit_room;
    uint32_t *credit_wheel, **credit_end, credit_room;
    uint32_t *ready_wheel, *ready_count, ready_room; /* slow stages: input VC << 1 | asks for VC */

    /* pipeline, as extra cycles before a stage decides */
    uint32_t va_wait;     /* from front to VC allocation */
    uint32_t sa_wait;     /* beyond the cycle after: switch_alloc_delay - 1 */
    uint32_t *arrived_at; /* as ring, when sa_wait > 0 */
    bool speculative, slow, serial;
    bool lookahead; /* routes by more than a table, and one hop ahead */

    rg_noc_routing routing;
    uint32_t *table;     /* [routers * nodes] output */
    uint16_t *digit;     /* [nodes * dims] */
    int16_t *direction;  /* [routers * 2 dims] local output towards + and -, -1: none */
    int8_t *came;        /* [inputs] direction in which the flit travels, -1: injected */
    int32_t *tree_power; /* [n + 1] k^i */
    int extent[RG_NOC_MAX_DIMS], dims;
    uint32_t kind_mask[2 * RG_NOC_MAX_CLASSES];

    packet *pool;
    uint32_t pool_size, pool_free; /* free list through link */

    source *source;      /* [nodes * classes] */
    bit_set active;      /* nodes with something to put in */
    uint8_t *last_class; /* [nodes] */
    uint32_t calendar[CALENDAR];
    rg_rng rng;
    rg_knuth *knuth; /* of a lockstep run, else NULL */
    log_table logs;

    /* what is measured */
    bool counting, recording;
    bool warming;        /* every packet that arrives counts, for the comparison of periods */
    uint32_t drain_from; /* packets born from here on are not recorded */
    uint32_t record_from, batch_length;
    int64_t recorded_out; /* recorded packets that have not arrived */
    tally packet_latency, network_latency, per_hop;
    double fragmentation, hop_sum;
    double batch_sum[BATCHES];
    int64_t batch_count[BATCHES];
    uint32_t *node_injected, *node_accepted, *node_packets; /* [nodes] flits; packets accepted */
    int64_t flit_hops, flits_in, flits_out, packets_alive;

    struct stream *stream; /* trace, NULL: drawn traffic */
    bool starved;          /* the pool could not grow */
};

/* route.c: fills out and mask of a packet that comes by VC vc of input port */
void rg_noc_state_route(rg_noc_sim *s, packet *p, uint32_t port, uint32_t vc);
/* source.c: sources and sinks */
void rg_noc_state_inject(rg_noc_sim *s);
void rg_noc_state_sink(rg_noc_sim *s, uint32_t node, uint32_t vc, uint32_t flit);
rg_status rg_noc_state_sources(rg_noc_sim *s, rg_err *err);
/* stream.c: traces */
rg_status rg_noc_state_stream_new(rg_noc_sim *s, rg_err *err);
void rg_noc_state_stream_wake(rg_noc_sim *s);
void rg_noc_state_stream_arrived(rg_noc_sim *s, uint32_t send, uint32_t flits);
/* measure.c */
void rg_noc_state_start_counting(rg_noc_sim *s);
rg_status rg_noc_state_step(rg_noc_sim *s, int64_t cycles, rg_err *err);
rg_status rg_noc_state_results(rg_arena *arena, const rg_noc_sim *s, double cycles, bool detail,
                               rg_noc_result *out, rg_err *err);
/* For a saturated network: there is no latency to tell. */
void rg_noc_state_blank_latencies(rg_noc_result *out);
/* alloc.c: allocators other than separable input first */
rg_status rg_noc_state_alloc_new(rg_noc_sim *s, rg_err *err);
void rg_noc_state_va(rg_noc_sim *s);
void rg_noc_state_sa(rg_noc_sim *s);

/* Candidates of an adaptive head: output ports with the VCs that it may ask for. */
typedef struct candidate {
    uint32_t out, mask;
    bool escape;
} candidate;
int rg_noc_state_candidates(const rg_noc_sim *s, uint32_t ivc, candidate *list);

static inline uint32_t rg_noc_state_front_flit(const rg_noc_sim *s, uint32_t ivc)
{
    return s->ring[s->ivc[ivc].base + s->ivc[ivc].head];
}

/* A number from 0 to n - 1, and one from 0 to below 1. */
static inline uint32_t rg_noc_state_below(rg_noc_sim *s, uint32_t n)
{
    return s->knuth != NULL ? rg_knuth_whole(s->knuth) % n : rg_rng_below(&s->rng, n);
}
static inline double rg_noc_state_real(rg_noc_sim *s)
{
    return s->knuth != NULL ? rg_knuth_real(s->knuth) : rg_rng_real(&s->rng);
}

/* What lies in a bucket of a wheel. */
static inline uint32_t rg_noc_state_flits_at(const rg_noc_sim *s, uint32_t bucket)
{
    return (uint32_t)(s->flit_end[bucket] - &s->flit_wheel[(size_t)bucket * s->flit_room]);
}
static inline uint32_t rg_noc_state_credits_at(const rg_noc_sim *s, uint32_t bucket)
{
    return (uint32_t)(s->credit_end[bucket] - &s->credit_wheel[(size_t)bucket * s->credit_room]);
}
static inline void rg_noc_state_send_flit(rg_noc_sim *s, uint32_t delay, uint32_t target,
                                          uint32_t flit)
{
    *s->flit_end[(s->now + delay) & s->wheel_mask]++ = (flit_event){target, flit};
}
static inline void rg_noc_state_send_credit(rg_noc_sim *s, uint32_t delay, uint32_t ovc)
{
    *s->credit_end[(s->now + delay) & s->wheel_mask]++ = ovc;
}

#endif
