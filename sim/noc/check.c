/* noc/check.c: conservation of flits and credits, and deadlock, on a standing simulation. */
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "noc/state.h"

/* Flits and credits under way to each VC, counted over the whole wheels. */
typedef struct in_flight {
    uint32_t *flits;   /* [(inputs + nodes) << shift] by target */
    uint32_t *credits; /* [(outputs + nodes) << shift] by output VC */
    int64_t flit_total;
} in_flight;

static bool count_in_flight(const rg_noc_sim *s, in_flight *f)
{
    f->flits = calloc((size_t)(s->inputs + s->nodes) << s->vc_shift, sizeof *f->flits);
    f->credits = calloc((size_t)(s->outputs + s->nodes) << s->vc_shift, sizeof *f->credits);
    f->flit_total = 0;
    if (f->flits == NULL || f->credits == NULL)
        return false;
    for (uint32_t b = 0; b <= s->wheel_mask; b++) {
        for (uint32_t i = 0; i < rg_noc_state_flits_at(s, b); i++)
            f->flits[s->flit_wheel[(size_t)b * s->flit_room + i].target]++;
        for (uint32_t i = 0; i < rg_noc_state_credits_at(s, b); i++)
            f->credits[s->credit_wheel[(size_t)b * s->credit_room + i]]++;
        f->flit_total += rg_noc_state_flits_at(s, b);
    }
    return true;
}

static rg_status check_output_vc(const rg_noc_sim *s, const in_flight *f, uint32_t port,
                                 uint32_t vc, rg_err *err)
{
    const uint32_t ovc = port << s->vc_shift | vc, target = s->output[port].target | vc;
    const bool sink = target >= s->inputs << s->vc_shift;
    const uint32_t waiting = sink ? 0 : s->ivc[target].count;
    const uint32_t sum = s->ovc[ovc].credits + waiting + f->flits[target] + f->credits[ovc];
    if (sum != s->buffer)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "cycle %u: output port %u VC %u has %u credits, %u flits behind it, %u on "
                       "the way and %u credits coming back; they must sum to %u",
                       s->now, port, vc, s->ovc[ovc].credits, waiting, f->flits[target],
                       f->credits[ovc], s->buffer);
    return RG_OK;
}

static rg_status check_all(const rg_noc_sim *s, const in_flight *f, rg_err *err)
{
    int64_t waiting = 0;
    for (uint32_t port = 0; port < s->outputs + s->nodes; port++)
        for (uint32_t vc = 0; vc < s->vcs; vc++)
            RG_TRY(check_output_vc(s, f, port, vc, err));
    for (uint32_t ivc = 0; ivc < s->inputs << s->vc_shift; ivc++) {
        const input_vc *v = &s->ivc[ivc];
        waiting += v->count;
        if (v->ovc != RG_NOC_NONE && s->ovc[v->ovc].owner != ivc)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "cycle %u: input VC %u holds output VC %u, which %u owns", s->now, ivc,
                           v->ovc, s->ovc[v->ovc].owner);
    }
    if (s->flits_in != s->flits_out + waiting + f->flit_total)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "cycle %u: %lld flits went in, %lld came out, %lld wait and %lld are on the "
                       "way",
                       s->now, (long long)s->flits_in, (long long)s->flits_out, (long long)waiting,
                       (long long)f->flit_total);
    return RG_OK;
}

rg_status rg_noc_sim_check(const rg_noc_sim *s, rg_err *err)
{
    in_flight f;
    rg_status status = RG_ERR_LIMIT;
    if (count_in_flight(s, &f))
        status = check_all(s, &f, err);
    else
        rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory for the conservation check");
    free(f.flits);
    free(f.credits);
    return status;
}

/* Could this output VC take a flit of a new owner sooner or later? */
static bool output_vc_lives(const rg_noc_sim *s, const in_flight *f, const uint8_t *lives,
                            uint32_t ovc)
{
    const uint32_t port = ovc >> s->vc_shift;
    const uint32_t target = s->output[port].target | (ovc & ((1u << s->vc_shift) - 1));
    if (target >= s->inputs << s->vc_shift || f->flits[target] > 0 || f->credits[ovc] > 0)
        return true;
    return s->ovc[ovc].credits > 0 || s->ivc[target].count == 0 || lives[target];
}

/* Could an output VC that a head asks for be granted sooner or later? With wait_for_tail_credit it
 * is nobody's while what lies behind it drains. */
static bool may_be_free(const rg_noc_sim *s, const in_flight *f, const uint8_t *lives, uint32_t ovc)
{
    const uint32_t owner = s->ovc[ovc].owner;
    if (owner != RG_NOC_NONE)
        return lives[owner];
    if (!s->ovc[ovc].tail_sent)
        return true;
    const uint32_t target =
        s->output[ovc >> s->vc_shift].target | (ovc & ((1u << s->vc_shift) - 1));
    return target >= s->inputs << s->vc_shift || f->flits[target] > 0 ||
           s->ivc[target].count == 0 || lives[target];
}

static bool head_lives(const rg_noc_sim *s, const in_flight *f, const uint8_t *lives, uint32_t ivc)
{
    candidate list[2 * RG_NOC_MAX_DIMS] = {{s->ivc[ivc].out, s->ivc[ivc].mask, false}};
    const int count =
        s->routing == RG_NOC_ROUTE_ADAPTIVE ? rg_noc_state_candidates(s, ivc, list) : 1;
    for (int c = 0; c < count; c++)
        for (uint32_t mask = list[c].mask; mask != 0; mask &= mask - 1) {
            const uint32_t ovc = list[c].out << s->vc_shift | (uint32_t)__builtin_ctz(mask);
            if (may_be_free(s, f, lives, ovc))
                return true;
        }
    return false;
}

/* A VC in the middle of a packet whose next flit has not come: its feeder must move. */
static bool feeder_lives(const rg_noc_sim *s, const in_flight *f, const uint8_t *lives,
                         uint32_t ivc)
{
    const uint32_t upstream =
        s->input[ivc >> s->vc_shift].upstream | (ivc & ((1u << s->vc_shift) - 1));
    const uint32_t owner = s->ovc[upstream].owner;
    return f->flits[ivc] > 0 || owner == RG_NOC_NONE || lives[owner];
}

static bool input_vc_lives(const rg_noc_sim *s, const in_flight *f, const uint8_t *lives,
                           uint32_t ivc)
{
    const input_vc *v = &s->ivc[ivc];
    if (v->count == 0)
        return v->ovc == RG_NOC_NONE || feeder_lives(s, f, lives, ivc);
    return v->ovc != RG_NOC_NONE ? output_vc_lives(s, f, lives, v->ovc)
                                 : head_lives(s, f, lives, ivc);
}

/* Marks what can move, until nothing more can be marked; the rest waits for itself for ever. */
int rg_noc_sim_deadlocked(rg_noc_sim *s)
{
    const uint32_t count = s->inputs << s->vc_shift;
    in_flight f;
    uint8_t *lives = calloc(count, 1);
    int dead = 0;
    if (count_in_flight(s, &f) && lives != NULL) {
        for (bool again = true; again;) {
            again = false;
            for (uint32_t ivc = 0; ivc < count; ivc++) {
                if (lives[ivc])
                    continue;
                if (input_vc_lives(s, &f, lives, ivc))
                    lives[ivc] = again = true;
            }
        }
        for (uint32_t ivc = 0; ivc < count; ivc++)
            dead += !lives[ivc];
    }
    free(f.flits);
    free(f.credits);
    free(lives);
    return dead;
}
