/* trace/req.h: streams of requests: when they come, how long they are, what they share.
 *
 * Reads core. A stream is read one request at a time in order of arrival and in constant memory.
 * Sources: files of other projects (req_file), made-up arrivals and lengths (req_synth). Text
 * itself is never needed: what a prompt says is a list of segments, and equal leading segments are
 * a shared prefix.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TRACE_REQ_H
#define RG_TRACE_REQ_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/rng.h"

/** A run of tokens with an identity: the same id at the same place means the same text. */
typedef struct rg_segment {
    uint64_t id;
    int64_t tokens;
} rg_segment;

typedef struct rg_request {
    int64_t index;                        /* from 0, in order of delivery */
    int64_t row;                          /* from 1, row in the source file; 0 when made up */
    double arrival_s;                     /* from the first arrival */
    int64_t prompt_tokens, output_tokens; /* output: 1 or more */
    int64_t priority;                     /* lower is served first */
    int64_t session, turn;                /* session -1: none */
    const rg_segment *segments;           /* what the prompt says; valid until the next call */
    int segment_count;                    /* 0: shares nothing with any other request */
    uint64_t output_id;                   /* identity of the output's text, 0: nobody reuses it */
    int64_t trace_block_tokens; /* segments are hash blocks of this size; 0: they are not */
} rg_request;

/** What to do with a request longer than the engine takes. */
typedef enum rg_overlong { RG_OVERLONG_REJECT, RG_OVERLONG_CUT, RG_OVERLONG_FAIL } rg_overlong;

/** What was seen on the way; every count that is not zero belongs into a report. */
typedef struct rg_request_facts {
    const char *format; /* "azure", "mooncake", ... */
    const char *path;   /* NULL when made up */
    int64_t rows;       /* read from the source */
    int64_t delivered;
    int64_t out_of_order;   /* rows earlier than one before them; put in order */
    int64_t equal_stamps;   /* rows with the arrival of the row before */
    int64_t empty_output;   /* rows without output tokens (failed requests), left out */
    int64_t empty_prompt;   /* rows without prompt tokens, left out */
    int64_t overlong;       /* requests beyond max_model_tokens, rejected or cut by option */
    int64_t cut_tokens;     /* prompt and output tokens taken away by cutting */
    bool no_arrivals;       /* the source has lengths only */
    bool estimated_lengths; /* tokens estimated from characters */
} rg_request_facts;

typedef struct rg_requests rg_requests;

/** Arrival of the next request, INFINITY when none is known: at the end, or while every further one
 * waits for a completion (closed loop, sessions). */
rg_status rg_requests_peek(rg_requests *stream, double *arrival_s, rg_err *err);
/** The next request; *more false at the end or when none is known yet. */
rg_status rg_requests_next(rg_requests *stream, rg_request *out, bool *more, rg_err *err);
/** Tell the stream that a request finished (or was refused); may make further ones known. */
void rg_requests_finished(rg_requests *stream, const rg_request *request, double time_s);
const rg_request_facts *rg_requests_facts(const rg_requests *stream);
/** Close files. The memory belongs to the arena. */
void rg_requests_close(rg_requests *stream);

/* ---- sources */

/** Open a trace by its content: Azure LLM inference 2023/2024 CSV, BurstGPT CSV, Vidur lengths CSV,
 * ridge CSV (arrival_s,input_tokens,output_tokens and more), Mooncake JSONL, vLLM or ShareGPT JSON.
 * format NULL or "auto" looks at the header. Errors: RG_ERR_INPUT with file, line and column. */
rg_status rg_requests_open(rg_arena *arena, const char *path, const char *format, rg_requests **out,
                           rg_err *err);
/** The same from memory; name stands in messages and its ending picks JSON or CSV. */
rg_status rg_requests_parse(rg_arena *arena, const char *name, const char *text, size_t length,
                            const char *format, rg_requests **out, rg_err *err);

/** A stream over requests in memory, which must outlive it, in order of arrival. */
rg_status rg_requests_array(rg_arena *arena, const rg_request *requests, int64_t count,
                            rg_requests **out, rg_err *err);

typedef enum rg_arrivals {
    RG_ARRIVE_POISSON,
    RG_ARRIVE_GAMMA,   /* interarrival times gamma with the given coefficient of variation */
    RG_ARRIVE_MMPP,    /* two-state Markov-modulated Poisson: calm and burst */
    RG_ARRIVE_UNIFORM, /* even spacing */
    RG_ARRIVE_AT_ONCE, /* all at time 0 */
    RG_ARRIVE_CLOSED,  /* so many users, each sends its next request when the last is answered */
} rg_arrivals;

#define RG_ARRIVALS_MOST_PER_S 1e6 /* of a rate on a command line */

typedef struct rg_arrival_spec {
    rg_arrivals kind;
    double rate_per_s;
    double cv;               /* gamma */
    double burst_rate_per_s; /* mmpp: rate in the burst state; rate_per_s in the calm */
    double calm_s, burst_s;  /* mmpp: mean stay in each state */
    int64_t users;           /* closed */
    double think_s;          /* closed: mean pause before the next request, exponential */
} rg_arrival_spec;

typedef enum rg_lengths {
    RG_LENGTH_FIXED,
    RG_LENGTH_UNIFORM,   /* least..most */
    RG_LENGTH_LOGNORMAL, /* by mean and coefficient of variation */
    RG_LENGTH_ZIPF,      /* least..most, P(k) ~ k^-exponent */
} rg_lengths;

typedef struct rg_length_spec {
    rg_lengths kind;
    int64_t least, most; /* every draw is kept inside; most 0: no upper bound */
    double mean, cv;
    double exponent;
} rg_length_spec;

typedef struct rg_session_spec {
    int64_t turns;         /* 1: no sessions */
    double think_s;        /* mean pause between an answer and the next turn, exponential */
    int64_t system_tokens; /* prefix common to all requests */
} rg_session_spec;

typedef struct rg_synth_spec {
    int64_t requests; /* in all, turns counted */
    rg_arrival_spec arrivals;
    rg_length_spec prompt, output; /* prompt: new text of each turn */
    rg_session_spec sessions;
    uint64_t seed;
} rg_synth_spec;

rg_status rg_requests_synth(rg_arena *arena, const rg_synth_spec *spec, rg_requests **out,
                            rg_err *err);
/** "poisson:10/s", "gamma:10/s,cv=2", "mmpp:2/s,20/s,30s,5s", "uniform:4/s", "closed:32",
 * "closed:32,think=2s", "at-once". */
rg_status rg_arrival_parse(const char *text, rg_arrival_spec *out, rg_err *err);
/** "512", "uniform:100-900", "lognormal:512,cv=1.2", "zipf:16-4096,1.1". */
rg_status rg_length_parse(const char *text, rg_length_spec *out, rg_err *err);

/* ---- changes to a stream */

/** Arrival times divided by factor (2: twice the rate). */
rg_status rg_requests_scale_time(rg_arena *arena, rg_requests *inner, double factor,
                                 rg_requests **out, rg_err *err);
/** Lengths and sharing of inner, arrivals of spec (a source without arrivals needs this). */
rg_status rg_requests_with_arrivals(rg_arena *arena, rg_requests *inner,
                                    const rg_arrival_spec *spec, uint64_t seed, rg_requests **out,
                                    rg_err *err);
/** The first count requests. */
rg_status rg_requests_head(rg_arena *arena, rg_requests *inner, int64_t count, rg_requests **out,
                           rg_err *err);
/** Requests with prompt + output beyond max_model_tokens: left out and counted, cut (the output
 * first, down to one token, then the front of the prompt stays), or an error. */
rg_status rg_requests_limit(rg_arena *arena, rg_requests *inner, int64_t max_model_tokens,
                            rg_overlong policy, rg_requests **out, rg_err *err);

/* ---- for those who write sources */

typedef struct rg_requests_class {
    rg_status (*peek)(rg_requests *stream, double *arrival_s, rg_err *err);
    rg_status (*next)(rg_requests *stream, rg_request *out, bool *more, rg_err *err);
    void (*finished)(rg_requests *stream, const rg_request *request, double time_s); /* or NULL */
    void (*close)(rg_requests *stream);                                              /* or NULL */
} rg_requests_class;

struct rg_requests {
    const rg_requests_class *class;
    rg_requests *inner; /* of a changed stream */
    rg_request_facts *facts;
};

#endif
