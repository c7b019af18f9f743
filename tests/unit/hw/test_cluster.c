/* tests/unit/hw/test_cluster.c: nodes, clusters and prices. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "core/find.h"
#include "hw/cluster.h"
#include "hw/price.h"

static rg_cluster *load(rg_arena *arena, const char *name)
{
    rg_err err = {0};
    rg_cluster *cluster = NULL;
    assert_ok(rg_cluster_load(arena, name, &cluster, &err));
    return cluster;
}

static void every_node_loads_and_agrees_with_its_device(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(256);
    const rg_data_entry *entries;
    size_t count;
    assert_ok(rg_data_list(arena, "hw/nodes", &entries, &count, &err));
    assert_true(count >= 40);
    for (size_t i = 0; i < count; i++) {
        const rg_cluster *cluster = load(arena, entries[i].name);
        rg_findings findings;
        assert_ok(rg_cluster_check(arena, cluster, &findings, &err));
        if (findings.count > 0)
            fail_msg("%s: %s", entries[i].name, findings.list[0].text);
    }
    rg_arena_free(arena);
}

static void a_bare_device_stands_for_its_usual_node(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_cluster *cluster = load(arena, "h200-sxm");
    assert_string_equal(cluster->name, "hgx-h200");
    assert_string_equal(cluster->accel->name, "h200-sxm");
    assert_int_equal(cluster->devices_per_node, 8);
    assert_int_equal(cluster->scale_up_devices, 8);
    assert_int_equal(cluster->scale_up.kind, RG_FABRIC_SWITCHED);
    rg_arena_free(arena);
}

/* A device of the user's own that starts from an H200 is put into the H200's node. */
static void a_changed_device_keeps_its_node(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(64);
    static const char text[] = "kind: accelerator\nname: mine\nbase: h200-sxm\n"
                               "power: {tdp: {value: 1 kW, source: \"assumed: what if\"}}\n";
    rg_node *root;
    rg_cluster *cluster;
    assert_ok(rg_doc_parse(arena, "mine.yaml", text, strlen(text), false, &root, &err));
    assert_ok(rg_cluster_read(arena, "mine.yaml", root, &cluster, &err));
    assert_string_equal(cluster->name, "hgx-h200");
    assert_string_equal(cluster->accel->name, "mine");
    assert_close(cluster->accel->tdp.value, 1000, 0);
    rg_arena_free(arena);
}

/* H100 SXM: 66.9 TFLOP/s of fp32 at 1.98 GHz follow the clock; 989.4 of bf16 are quoted at 1.83
 * GHz, so that 1.9 GHz leaves them and 0.915 GHz halves them. A peak changed by name stays as
 * given. */
static void peaks_follow_the_clock(void **state)
{
    static const struct {
        const char *clock;
        double bf16, fp32;
    } rows[] = {{"1.98 GHz", 1, 1},
                {"1.9 GHz", 1, 1.9 / 1.98},
                {"0.915 GHz", 0.5, 0.915 / 1.98},
                {"x2", 2, 2}};
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_accel *spec = load(arena, "h100-sxm")->accel;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rg_err err = {0};
        rg_cluster *cluster;
        const rg_override items[] = {{"hw.clocks.boost", rows[i].clock, RG_NOWHERE},
                                     {"hw.peaks.matrix.fp8_fp32.rate", "1 PFLOP/s", RG_NOWHERE}};
        const rg_changes changes = {items, 2};
        assert_ok(rg_cluster_load_changed(arena, "h100-sxm", &changes, &cluster, &err));
        assert_int_equal(cluster->accel->peak_count, spec->peak_count);
        assert_close(rg_accel_peak(cluster->accel, RG_BF16)->rate.value /
                         rg_accel_peak(spec, RG_BF16)->rate.value,
                     rows[i].bf16, 1e-12);
        assert_close(rg_accel_peak(cluster->accel, RG_FP8)->rate.value, 1e15, 1e-12);
        for (int p = 0; p < spec->peak_count; p++)
            if (strcmp(spec->peaks[p].name, "fp32_fp32") == 0)
                assert_close(cluster->accel->peaks[p].rate.value / spec->peaks[p].rate.value,
                             rows[i].fp32, 1e-12);
    }
    rg_arena_free(arena);
}

/* H200 in its HGX node: 450 GB/s over 18 NVLinks, 141 GB. What a change takes along does not move
 * where the change names it too. */
static void node_and_memory_follow_the_device(void **state)
{
    static const struct {
        const char *path[2], *value[2];
        double rate, usable; /* over those of the file */
    } rows[] = {
        {{"hw.links.nvlink4.rate_per_direction"}, {"x0.5"}, 0.5, 1},
        {{"hw.links.nvlink4.links"}, {"9"}, 0.5, 1},
        {{"hw.links.nvlink4.links", "hw.links.nvlink4.rate_per_link"}, {"36", "x2"}, 4, 1},
        {{"hw.links.nvlink4.rate_per_direction", "cluster.scale_up.rate_per_direction"},
         {"x0.5", "900 GB/s"},
         2,
         1},
        {{"hw.links.pcie5x16.rate_per_direction"}, {"x0.5"}, 1, 1},
        {{"hw.memory.hbm.capacity"}, {"x0.5"}, 1, 0.5},
        {{"hw.memory.hbm.bandwidth"}, {"x0.5"}, 1, 1},
    };
    static const char *const machines[] = {"hgx-h200", "h200-sxm"};
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_cluster *spec = load(arena, "hgx-h200");
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof rows[0]); i++) {
        rg_err err = {0};
        rg_cluster *cluster;
        const size_t r = i / 2;
        const rg_override items[] = {{rows[r].path[0], rows[r].value[0], RG_NOWHERE},
                                     {rows[r].path[1], rows[r].value[1], RG_NOWHERE}};
        const rg_changes changes = {items, rows[r].path[1] ? 2 : 1};
        assert_ok(rg_cluster_load_changed(arena, machines[i % 2], &changes, &cluster, &err));
        assert_close(cluster->scale_up.rate_per_direction.value,
                     rows[r].rate * spec->scale_up.rate_per_direction.value, 1e-12);
        assert_close(rg_accel_memory(cluster->accel)->usable.value,
                     rows[r].usable * rg_accel_memory(spec->accel)->usable.value, 1e-12);
    }
    rg_arena_free(arena);
}

/* GB200 NVL72: 18 trays of 4, one NVLink domain of 72; 130 TB/s over it in both directions. */
static void nvl72_is_one_domain_of_72(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_cluster *cluster = load(arena, "gb200-nvl72");
    assert_int_equal(cluster->devices_per_node * cluster->nodes, 72);
    assert_int_equal(cluster->scale_up_devices, 72);
    assert_close(2 * 72 * cluster->scale_up.rate_per_direction.value, 130e12, 0.01);
    rg_arena_free(arena);
}

/* TPU v5e 4x4: a torus of 16, 4 ports of 50 GB/s each way a chip. */
static void a_tpu_slice_is_a_torus(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_cluster *cluster = load(arena, "tpu-v5e-16");
    assert_int_equal(cluster->scale_up.kind, RG_FABRIC_TORUS);
    assert_int_equal(cluster->scale_up.dimensions, 2);
    assert_int_equal(cluster->scale_up.extent[0] * cluster->scale_up.extent[1], 16);
    assert_close(cluster->scale_up.rate_per_direction.value, 200e9, 1e-12);
    rg_arena_free(arena);
}

static void an_unknown_name_is_sought_among_nodes_and_devices(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(64);
    rg_cluster *cluster;
    assert_int_equal(rg_cluster_load(arena, "hgx-h20O", &cluster, &err), RG_ERR_USAGE);
    assert_string_equal(err.text, "no hardware 'hgx-h20O'; nearest is 'hgx-h20'");
    err = (rg_err){0};
    assert_int_equal(rg_cluster_load(arena, "h100", &cluster, &err), RG_ERR_USAGE);
    assert_string_equal(
        err.text, "hardware 'h100' stands for several; name one of: h100-nvl, h100-pcie, h100-sxm");
    rg_arena_free(arena);
}

static void the_least_price_of_a_term_wins(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(64);
    static const char text[] = "kind: prices\nprices:\n"
                               "  - {device: x, provider: a, date: 2026-01-01, term: on-demand,\n"
                               "     price: {value: 3 $/h, source: \"list of a\"}}\n"
                               "  - {device: x, provider: b, date: 2026-01-02, term: on-demand,\n"
                               "     price: {value: 2 $/h, source: \"list of b\"}}\n"
                               "  - {device: x, provider: b, date: 2026-01-02, term: spot,\n"
                               "     price: {value: 1 $/h, source: \"list of b\"}}\n";
    rg_node *root;
    rg_price_list prices;
    assert_ok(rg_doc_parse(arena, "p.yaml", text, strlen(text), false, &root, &err));
    assert_ok(rg_prices_read(arena, "p.yaml", root, &prices, &err));
    assert_string_equal(rg_price_least(&prices, "x", RG_PRICE_ON_DEMAND, NULL)->provider, "b");
    assert_close(rg_price_least(&prices, "x", RG_PRICE_ON_DEMAND, "a")->price.value, 3, 0);
    assert_close(rg_price_least(&prices, "x", RG_PRICE_SPOT, NULL)->price.value, 1, 0);
    assert_null(rg_price_least(&prices, "y", RG_PRICE_SPOT, NULL));
    rg_arena_free(arena);
}

/* Every price is of a device that there is, and every device has one. */
static void prices_and_devices_match(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(256);
    rg_price_list prices;
    const rg_data_entry *entries;
    size_t count;
    assert_ok(rg_prices_load(arena, NULL, &prices, &err));
    for (int i = 0; i < prices.count; i++) {
        const char *path;
        assert_ok(rg_data_try(arena, "hw", prices.list[i].device, &path, &err));
        if (path == NULL)
            fail_msg("a price of '%s', which is no device", prices.list[i].device);
    }
    assert_ok(rg_data_list(arena, "hw", &entries, &count, &err));
    for (size_t i = 0; i < count; i++)
        if (strcmp(entries[i].name, "prices") != 0 &&
            rg_price_least(&prices, entries[i].name, RG_PRICE_ON_DEMAND, NULL) == NULL)
            fail_msg("no on-demand price of '%s'", entries[i].name);
    rg_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_loads_and_agrees_with_its_device),
        cmocka_unit_test(a_bare_device_stands_for_its_usual_node),
        cmocka_unit_test(a_changed_device_keeps_its_node),
        cmocka_unit_test(peaks_follow_the_clock),
        cmocka_unit_test(node_and_memory_follow_the_device),
        cmocka_unit_test(nvl72_is_one_domain_of_72),
        cmocka_unit_test(a_tpu_slice_is_a_torus),
        cmocka_unit_test(an_unknown_name_is_sought_among_nodes_and_devices),
        cmocka_unit_test(the_least_price_of_a_term_wins),
        cmocka_unit_test(prices_and_devices_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
