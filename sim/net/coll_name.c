/* net/coll_name.c: names of collectives, algorithms, protocols; bus factors. */
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "core/text.h"

#include "net/coll.h"

static const char *const op_names[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                       "broadcast",  "reduce",         "send_recv",  NULL};
static const char *const algorithm_names[] = {
    "auto",      "ring",         "tree",  "halving_doubling", "one_shot", "two_shot",
    "in_switch", "hierarchical", "torus", "direct",           NULL};
static const char *const protocol_names[] = {"auto", "ll", "ll128", "simple", NULL};

const char *rg_coll_op_name(rg_coll_op op)
{
    return op_names[op];
}

const char *rg_coll_algorithm_name(rg_coll_algorithm algorithm)
{
    return algorithm_names[algorithm];
}

const char *rg_coll_protocol_name(rg_coll_protocol protocol)
{
    return protocol_names[protocol];
}

const char *rg_coll_limit_name(rg_coll_limit limit)
{
    static const char *const names[RG_LIMIT_COUNT] = {"none",   "latency", "link",  "pcie_uplink",
                                                      "socket", "network", "switch"};
    return names[limit];
}

/** Letters and digits alone, so that "all-to-all", "alltoall" and "AllToAll" are one name. */
static void squeeze(const char *name, char out[64])
{
    size_t n = 0;
    for (; *name != '\0' && n < 63; name++) {
        const char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            out[n++] = c;
    }
    out[n] = '\0';
}

static int find_name(const char *name, const char *const *names)
{
    char wanted[64], known[64];
    squeeze(name, wanted);
    for (int i = 0; names[i] != NULL; i++) {
        squeeze(names[i], known);
        if (strcmp(wanted, known) == 0)
            return i;
    }
    return -1;
}

rg_status rg_coll_op_parse(const char *name, rg_coll_op *out, rg_err *err)
{
    const int found = find_name(name, op_names);
    if (found < 0) {
        const char *near = rg_text_nearest(name, op_names);
        return rg_fail(
            err, RG_ERR_USAGE, RG_NOWHERE,
            "collective '%s' is not known%s%s%s; all_reduce, reduce_scatter, all_gather, "
            "all_to_all, broadcast, reduce or send_recv would do",
            name, near ? ", '" : "", near ? near : "", near ? "' is near" : "");
    }
    *out = (rg_coll_op)found;
    return RG_OK;
}

rg_status rg_coll_algorithm_parse(const char *name, rg_coll_algorithm *out, rg_err *err)
{
    int found = find_name(name, algorithm_names);
    if (found < 0 && (strcmp(name, "nvls") == 0 || strcmp(name, "sharp") == 0))
        found = RG_ALG_IN_SWITCH;
    if (found < 0)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "algorithm '%s' is not known; auto, ring, tree, halving_doubling, one_shot, "
                       "two_shot, in_switch, hierarchical, torus or direct would do",
                       name);
    *out = (rg_coll_algorithm)found;
    return RG_OK;
}

double rg_coll_bus_factor(rg_coll_op op, int64_t ranks)
{
    if (ranks < 2)
        return 0;
    const double n = (double)ranks;
    switch (op) {
    case RG_COLL_ALL_REDUCE:
        return 2 * (n - 1) / n;
    case RG_COLL_REDUCE_SCATTER:
    case RG_COLL_ALL_GATHER:
    case RG_COLL_ALL_TO_ALL:
        return (n - 1) / n;
    default:
        return 1;
    }
}
