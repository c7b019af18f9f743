/* noc/workload.c: classes of traffic from YAML. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/workload.h"

#include <string.h>

#include "core/doc.h"
#include "core/text.h"
#include "noc/closed.h"

typedef struct reading {
    rg_arena *arena;
    const rg_noc_design *design;
    rg_noc_workload *out;
    rg_err *err;
} reading;

/* [first, last] of the router's virtual channels; all of them when absent. */
static rg_status read_vcs(const reading *in, rg_node *map, const char *key, int *first, int *count)
{
    rg_node *list = rg_map_find(map, key);
    int64_t low, high;
    *first = 0;
    *count = in->design->router.vcs;
    if (list == NULL)
        return RG_OK;
    RG_TRY(rg_node_expect(list, RG_NODE_LIST, key, in->err));
    if (list->count != 2)
        return rg_fail(in->err, RG_ERR_INPUT, list->pos,
                       "%s has '%zu' entries; write the first and the last channel, as [0, 1]", key,
                       list->count);
    RG_TRY(rg_node_int(list->first, 0, in->design->router.vcs - 1, &low, in->err));
    RG_TRY(rg_node_int(list->first->next, low, in->design->router.vcs - 1, &high, in->err));
    *first = (int)low;
    *count = (int)(high - low + 1);
    return RG_OK;
}

static rg_status find_node(const reading *in, const rg_node *entry, int *out)
{
    const char *colon = strchr(entry->key, ':');
    const rg_noc_group *group = &in->design->groups[0];
    int64_t index;
    if (colon != NULL) {
        const char *name =
            rg_arena_copy(in->arena, entry->key, (size_t)(colon - entry->key), in->err);
        if (name == NULL)
            return RG_ERR_LIMIT;
        if (rg_noc_design_group(in->design, name, &group, NULL) != RG_OK)
            group = NULL;
    }
    if (group == NULL || !rg_text_to_int(colon != NULL ? colon + 1 : entry->key, &index) ||
        index < 0 || index >= group->count)
        return rg_fail(in->err, RG_ERR_INPUT, entry->key_pos,
                       "'%.60s' is no node of the network; write its number or \"group:index\"",
                       entry->key);
    *out = group->first + (int)index;
    return RG_OK;
}

static rg_status read_rates(const reading *in, rg_node *map, rg_noc_class *cl)
{
    rg_node *rates = rg_map_find(map, "rates");
    if (rates == NULL)
        return RG_OK;
    double *factor = RG_NEW(in->arena, double, in->design->graph->nodes, in->err);
    if (factor == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(rg_node_expect(rates, RG_NODE_MAP, "rates", in->err));
    memcpy(factor, cl->node_factor, (size_t)in->design->graph->nodes * sizeof *factor);
    for (const rg_node *entry = rates->first; entry != NULL; entry = entry->next) {
        int node;
        double rate;
        RG_TRY(find_node(in, entry, &node));
        RG_TRY(rg_node_real(entry, false, &rate, in->err));
        if (rate < 0.0)
            return rg_fail(in->err, RG_ERR_INPUT, entry->pos, "rate '%g' is below 0", rate);
        factor[node] = rate;
    }
    cl->node_factor = factor;
    return RG_OK;
}

static rg_status read_transactions(const reading *in, rg_node *map, rg_noc_class *cl)
{
    rg_node *list = rg_map_find(map, "request_reply");
    int *const flits[] = {&cl->read_request, &cl->read_reply, &cl->write_request, &cl->write_reply};
    if (list == NULL)
        return RG_OK;
    RG_TRY(rg_node_expect(list, RG_NODE_LIST, "request_reply", in->err));
    if (list->count != 4)
        return rg_fail(in->err, RG_ERR_INPUT, list->pos,
                       "request_reply has '%zu' entries; write flits of read request, read reply, "
                       "write request and write reply, as [1, 5, 5, 1]",
                       list->count);
    const rg_node *item = list->first;
    for (int i = 0; i < 4; i++, item = item->next) {
        int64_t value;
        RG_TRY(rg_node_int(item, 1, UINT16_MAX, &value, in->err));
        *flits[i] = (int)value;
    }
    cl->request_reply = true;
    RG_TRY(rg_map_real(map, "write_share", &cl->write_share, in->err));
    if (cl->write_share < 0.0 || cl->write_share > 1.0)
        return rg_fail(in->err, RG_ERR_INPUT, list->pos, "write_share '%g' is not from 0 to 1",
                       cl->write_share);
    return read_vcs(in, map, "reply_vcs", &cl->reply_vc_first, &cl->reply_vc_count);
}

static rg_status read_class(reading *in, rg_node *map)
{
    rg_noc_workload *w = in->out;
    rg_noc_class *cl = &w->classes[w->count];
    const char *from, *to, *traffic;
    int64_t flits;
    int injecting;
    double share;
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, "a class", in->err));
    RG_TRY(rg_map_text(map, "name", &w->names[w->count], in->err));
    RG_TRY(rg_map_text_or(map, "from", "all", &from, in->err));
    RG_TRY(rg_map_text_or(map, "to", "all", &to, in->err));
    RG_TRY(rg_map_text_or(map, "traffic", "", &traffic, in->err));
    if (rg_noc_group_traffic(in->arena, in->design, from, to, cl, &injecting, NULL) != RG_OK)
        return rg_fail(in->err, RG_ERR_INPUT, map->pos,
                       "the network has no group '%.40s', or none '%.40s'", from, to);
    if (traffic[0] != 0) {
        rg_noc_pattern *pattern;
        RG_TRY(rg_noc_pattern_parse(in->arena, traffic, in->design->graph, map->pos, &pattern,
                                    in->err));
        cl->pattern = pattern;
    }
    RG_TRY(rg_map_real(map, "share", &share, in->err));
    if (!(share > 0.0))
        return rg_fail(in->err, RG_ERR_INPUT, map->pos, "share '%g' is not above 0", share);
    cl->share = share;
    RG_TRY(rg_map_int_or(map, "flits", 1, UINT16_MAX, 1, &flits, in->err));
    cl->flits = (int)flits;
    RG_TRY(read_vcs(in, map, "vcs", &cl->vc_first, &cl->vc_count));
    RG_TRY(read_transactions(in, map, cl));
    RG_TRY(read_rates(in, map, cl));
    w->count++;
    return rg_map_done(map, in->err);
}

rg_status rg_noc_workload_load(rg_arena *arena, const char *path, const rg_noc_design *design,
                               rg_noc_workload *out, rg_err *err)
{
    reading in = {.arena = arena, .design = design, .out = out, .err = err};
    rg_node *root, *classes;
    const char *kind, *network;
    *out = (rg_noc_workload){.path = path};
    RG_TRY(rg_doc_load(arena, path, &root, err));
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "a traffic file", err));
    RG_TRY(rg_map_text(root, "kind", &kind, err));
    if (strcmp(kind, "noc-traffic") != 0)
        return rg_fail(err, RG_ERR_INPUT, root->pos,
                       "kind is '%.40s'; a traffic file says 'noc-traffic'", kind);
    RG_TRY(rg_map_text_or(root, "network", "", &network, err)); /* of ridge check alone */
    RG_TRY(rg_map_get(root, "classes", &classes, err));
    RG_TRY(rg_node_expect(classes, RG_NODE_LIST, "classes", err));
    if (classes->count < 1 || classes->count > RG_NOC_MAX_CLASSES)
        return rg_fail(err, RG_ERR_INPUT, classes->pos, "'%zu' classes; 1 to %d can be simulated",
                       classes->count, RG_NOC_MAX_CLASSES);
    for (rg_node *item = classes->first; item != NULL; item = item->next)
        RG_TRY(read_class(&in, item));
    return rg_map_done(root, err);
}
