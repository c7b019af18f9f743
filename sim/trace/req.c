/* trace/req.c: the stream interface, and streams that change another stream. */
// SPDX-License-Identifier: Apache-2.0
#include "trace/req.h"

#include <math.h>

rg_status rg_requests_peek(rg_requests *stream, double *arrival_s, rg_err *err)
{
    return stream->class->peek(stream, arrival_s, err);
}

rg_status rg_requests_next(rg_requests *stream, rg_request *out, bool *more, rg_err *err)
{
    return stream->class->next(stream, out, more, err);
}

void rg_requests_finished(rg_requests *stream, const rg_request *request, double time_s)
{
    if (stream->class->finished)
        stream->class->finished(stream, request, time_s);
}

const rg_request_facts *rg_requests_facts(const rg_requests *stream)
{
    return stream->facts;
}

void rg_requests_close(rg_requests *stream)
{
    if (stream && stream->class->close)
        stream->class->close(stream);
}

static void close_inner(rg_requests *stream)
{
    rg_requests_close(stream->inner);
}

static void finished_inner(rg_requests *stream, const rg_request *request, double time_s)
{
    rg_requests_finished(stream->inner, request, time_s);
}

/* ---- requests in memory */

typedef struct array {
    rg_requests base;
    rg_request_facts facts;
    const rg_request *items;
    int64_t count;
} array;

static rg_status array_peek(rg_requests *stream, double *arrival_s, rg_err *err)
{
    (void)err;
    const array *a = (array *)stream;
    *arrival_s =
        a->facts.delivered < a->count ? a->items[a->facts.delivered].arrival_s : (double)INFINITY;
    return RG_OK;
}

static rg_status array_next(rg_requests *stream, rg_request *out, bool *more, rg_err *err)
{
    (void)err;
    array *a = (array *)stream;
    *more = a->facts.delivered < a->count;
    if (*more) {
        *out = a->items[a->facts.delivered];
        out->index = a->facts.delivered++;
    }
    return RG_OK;
}

static const rg_requests_class array_class = {array_peek, array_next, NULL, NULL};

rg_status rg_requests_array(rg_arena *arena, const rg_request *requests, int64_t count,
                            rg_requests **out, rg_err *err)
{
    array *a = RG_NEW(arena, array, 1, err);
    if (!a)
        return RG_ERR_LIMIT;
    a->base = (rg_requests){&array_class, NULL, &a->facts};
    a->facts.format = "memory";
    a->facts.rows = count;
    a->items = requests;
    a->count = count;
    *out = &a->base;
    return RG_OK;
}

/* ---- time scaled */

typedef struct scaled {
    rg_requests base;
    double factor;
} scaled;

static rg_status scaled_peek(rg_requests *stream, double *arrival_s, rg_err *err)
{
    RG_TRY(rg_requests_peek(stream->inner, arrival_s, err));
    *arrival_s /= ((scaled *)stream)->factor;
    return RG_OK;
}

static rg_status scaled_next(rg_requests *stream, rg_request *out, bool *more, rg_err *err)
{
    RG_TRY(rg_requests_next(stream->inner, out, more, err));
    if (*more)
        out->arrival_s /= ((scaled *)stream)->factor;
    return RG_OK;
}

static const rg_requests_class scaled_class = {scaled_peek, scaled_next, finished_inner,
                                               close_inner};

rg_status rg_requests_scale_time(rg_arena *arena, rg_requests *inner, double factor,
                                 rg_requests **out, rg_err *err)
{
    if (!(factor > 0) || !isfinite(factor))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "time factor '%g' must be a positive number, such as 2 for twice the rate",
                       factor);
    scaled *s = RG_NEW(arena, scaled, 1, err);
    if (!s)
        return RG_ERR_LIMIT;
    s->base = (rg_requests){&scaled_class, inner, inner->facts};
    s->factor = factor;
    *out = &s->base;
    return RG_OK;
}

/* ---- the first so many */

typedef struct headed {
    rg_requests base;
    int64_t left;
} headed;

static rg_status headed_peek(rg_requests *stream, double *arrival_s, rg_err *err)
{
    if (((headed *)stream)->left <= 0) {
        *arrival_s = INFINITY;
        return RG_OK;
    }
    return rg_requests_peek(stream->inner, arrival_s, err);
}

static rg_status headed_next(rg_requests *stream, rg_request *out, bool *more, rg_err *err)
{
    headed *h = (headed *)stream;
    *more = false;
    if (h->left <= 0)
        return RG_OK;
    RG_TRY(rg_requests_next(stream->inner, out, more, err));
    h->left -= *more;
    return RG_OK;
}

static const rg_requests_class headed_class = {headed_peek, headed_next, finished_inner,
                                               close_inner};

rg_status rg_requests_head(rg_arena *arena, rg_requests *inner, int64_t count, rg_requests **out,
                           rg_err *err)
{
    headed *h = RG_NEW(arena, headed, 1, err);
    if (!h)
        return RG_ERR_LIMIT;
    h->base = (rg_requests){&headed_class, inner, inner->facts};
    h->left = count;
    *out = &h->base;
    return RG_OK;
}

/* ---- over-long requests: one request is read ahead, so that peek skips what is left out */

typedef struct limited {
    rg_requests base;
    int64_t most;
    rg_overlong policy;
    rg_request ahead;
    bool have;
    int64_t index;
} limited;

static rg_status limited_fill(limited *l, rg_err *err)
{
    while (!l->have) {
        bool more;
        RG_TRY(rg_requests_next(l->base.inner, &l->ahead, &more, err));
        if (!more)
            return RG_OK;
        rg_request *r = &l->ahead;
        const int64_t over = r->prompt_tokens + r->output_tokens - l->most;
        l->have = true;
        if (over <= 0)
            break;
        rg_request_facts *f = l->base.facts;
        f->overlong++;
        if (l->policy == RG_OVERLONG_FAIL)
            return rg_fail(err, RG_ERR_INPUT, (rg_pos){f->path, (int)r->row, 1},
                           "request %lld has '%lld' prompt and '%lld' output tokens, over the "
                           "model's %lld; choose --over-long reject or cut to go on",
                           (long long)r->index, (long long)r->prompt_tokens,
                           (long long)r->output_tokens, (long long)l->most);
        if (l->policy == RG_OVERLONG_REJECT) {
            rg_requests_finished(l->base.inner, r, r->arrival_s);
            l->have = false;
            continue;
        }
        f->cut_tokens += over;
        const int64_t off_output = over < r->output_tokens ? over : r->output_tokens - 1;
        r->output_tokens -= off_output;
        r->prompt_tokens -= over - off_output;
    }
    return RG_OK;
}

static rg_status limited_peek(rg_requests *stream, double *arrival_s, rg_err *err)
{
    limited *l = (limited *)stream;
    *arrival_s = INFINITY;
    RG_TRY(limited_fill(l, err));
    if (l->have)
        *arrival_s = l->ahead.arrival_s;
    return RG_OK;
}

static rg_status limited_next(rg_requests *stream, rg_request *out, bool *more, rg_err *err)
{
    limited *l = (limited *)stream;
    RG_TRY(limited_fill(l, err));
    *more = l->have;
    if (l->have) {
        *out = l->ahead;
        out->index = l->index++;
    }
    l->have = false;
    return RG_OK;
}

static const rg_requests_class limited_class = {limited_peek, limited_next, finished_inner,
                                                close_inner};

rg_status rg_requests_limit(rg_arena *arena, rg_requests *inner, int64_t max_model_tokens,
                            rg_overlong policy, rg_requests **out, rg_err *err)
{
    if (max_model_tokens < 2)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "a model length of '%lld' tokens leaves no room for a prompt and an answer",
                       (long long)max_model_tokens);
    limited *l = RG_NEW(arena, limited, 1, err);
    if (!l)
        return RG_ERR_LIMIT;
    l->base = (rg_requests){&limited_class, inner, inner->facts};
    l->most = max_model_tokens;
    l->policy = policy;
    *out = &l->base;
    return RG_OK;
}
