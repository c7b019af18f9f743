/* tests/unit/net/test_measured.c: collectives against measured tables and logs.
 *
 * The constants of the H200, A100 and L40S were fitted on these tables, so the limits here say how
 * well a few physical constants hold all sizes and ranks together; the logs of H100 nodes were not
 * fitted to but for the three constants of the network.
 */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>

#include "core/csv.h"
#include "core/stat.h"
#include "net/coll.h"
#include "trace/run.h"

enum { MOST_ROWS = 2000 };

static rg_err err;

static int setup(void **state)
{
    *state = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
    return *state == NULL;
}

static int teardown(void **state)
{
    rg_arena_free(*state);
    return 0;
}

static double predict(const rg_coll_context *x, rg_coll_op op, int64_t ranks, double bytes,
                      bool integer, rg_coll_library library, int64_t local)
{
    const rg_coll_query q = {.op = op,
                             .ranks = ranks,
                             .bytes = RG_B(bytes),
                             .integer = integer,
                             .library = library,
                             .local = local};
    rg_coll_result r;
    assert_ok(rg_coll_time(x, &q, &r, &err));
    return r.time.v;
}

/** Errors of a table, rows of at least and below 1 MiB apart. */
static void table_errors(void **state, const char *cluster_name, const char *path, bool custom,
                         rg_error_summary *small, rg_error_summary *big)
{
    static double predicted[2][MOST_ROWS], measured[2][MOST_ROWS], scratch[MOST_ROWS];
    size_t n[2] = {0, 0};
    rg_cluster *cluster;
    rg_coll_context *x;
    rg_csv *csv;
    assert_ok(rg_cluster_load(*state, cluster_name, &cluster, &err));
    assert_ok(rg_coll_prepare(*state, cluster, NULL, &x, &err));
    assert_ok(rg_csv_open(*state, path, &csv, &err));
    const int op_column = rg_csv_find(csv, "op"), type = rg_csv_find(csv, "dtype");
    for (bool more = true;;) {
        assert_ok(rg_csv_next(csv, &more, &err));
        if (!more)
            break;
        rg_coll_op op = RG_COLL_ALL_REDUCE;
        int64_t ranks;
        double bytes, us;
        if (op_column >= 0)
            assert_ok(rg_coll_op_parse(rg_csv_text(csv, op_column), &op, &err));
        assert_ok(rg_csv_int(csv, rg_csv_find(csv, "ranks"), &ranks, &err));
        assert_ok(rg_csv_real(csv, rg_csv_find(csv, "bytes"), &bytes, &err));
        assert_ok(rg_csv_real(csv, rg_csv_find(csv, "time_us"), &us, &err));
        const int k = bytes >= 1 << 20;
        assert_true(n[k] < MOST_ROWS);
        predicted[k][n[k]] =
            predict(x, op, ranks, bytes, strcmp(rg_csv_text(csv, type), "int8") == 0,
                    custom ? RG_LIB_CUSTOM : RG_LIB_NCCL, 0);
        measured[k][n[k]++] = us * 1e-6;
    }
    rg_csv_close(csv);
    *small = rg_stat_errors(predicted[0], measured[0], n[0], scratch);
    *big = rg_stat_errors(predicted[1], measured[1], n[1], scratch);
    print_message(
        "%s %s: below 1 MiB median %.1f %% p90 %.1f %%, above median %.1f %% p90 %.1f %%\n",
        cluster_name, custom ? "custom" : "nccl", 100 * small->median_ape, 100 * small->p90_ape,
        100 * big->median_ape, 100 * big->p90_ape);
}

static void nvlink_tables_hold_with_few_constants(void **state)
{
    skip_without(SHARED("measured/h200_sxm/nccl.csv"));
    const struct {
        const char *cluster, *path;
        bool custom;
    } tables[] = {
        {"hgx-h200", SHARED("measured/h200_sxm/nccl.csv"), false},
        {"hgx-h200", SHARED("measured/h200_sxm/custom_allreduce.csv"), true},
        {"dgx-a100-80gb", SHARED("measured/a100_sxm/nccl.csv"), false},
        {"dgx-a100-80gb", SHARED("measured/a100_sxm/custom_allreduce.csv"), true},
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        rg_error_summary small, big;
        table_errors(state, tables[i].cluster, tables[i].path, tables[i].custom, &small, &big);
        /* repeated rows (half and int8 of all-gather) differ by 2 % in the median, up to 15 % */
        assert_true(small.median_ape < 0.06 && small.p90_ape < 0.14);
        assert_true(big.median_ape < 0.03 && big.p90_ape < 0.08);
    }
}

static void engines_and_libraries_turn_where_their_sources_say(void **state)
{
    const struct {
        const char *cluster;
        int64_t ranks;
        double bytes;
        rg_coll_algorithm expected;
    } picks[] = {
        {"hgx-h200", 2, 15e6, RG_ALG_ONE_SHOT},
        {"hgx-h200", 2, 17e6, RG_ALG_RING}, /* beyond the workspace: NCCL */
        {"hgx-h200", 4, (2 << 20) - 2, RG_ALG_ONE_SHOT},
        {"hgx-h200", 4, 2 << 20, RG_ALG_TWO_SHOT},
        {"hgx-h200", 4, 8 << 20, RG_ALG_RING},
        {"hgx-h200", 8, (512 << 10) - 2, RG_ALG_ONE_SHOT},
        {"hgx-h200", 8, 512 << 10, RG_ALG_TWO_SHOT},
        {"hgx-h200", 8, 8 << 20, RG_ALG_IN_SWITCH},
        {"dgx-a100-80gb", 8, 512 << 10, RG_ALG_ONE_SHOT},
        {"dgx-a100-80gb", 8, 2 << 20, RG_ALG_RING},
    };
    for (size_t i = 0; i < sizeof picks / sizeof picks[0]; i++) {
        rg_cluster *cluster;
        rg_coll_context *x;
        rg_coll_result r;
        assert_ok(rg_cluster_load(*state, picks[i].cluster, &cluster, &err));
        assert_ok(rg_coll_prepare(*state, cluster, NULL, &x, &err));
        const rg_coll_query q = {.op = RG_COLL_ALL_REDUCE,
                                 .ranks = picks[i].ranks,
                                 .bytes = RG_B(picks[i].bytes),
                                 .library = RG_LIB_CUSTOM};
        assert_ok(rg_coll_time(x, &q, &r, &err));
        assert_int_equal(r.algorithm, picks[i].expected);
        /* NCCL_P2P_LL_THRESHOLD: 16 KiB for a peer */
        for (int above = 0; above < 2; above++) {
            const rg_coll_query direct = {.op = RG_COLL_ALL_TO_ALL,
                                          .ranks = picks[i].ranks,
                                          .bytes = RG_B((16384.0 + above) * (double)picks[i].ranks),
                                          .library = RG_LIB_NCCL};
            assert_ok(rg_coll_time(x, &direct, &r, &err));
            assert_int_equal(r.protocol, above ? RG_PROTO_SIMPLE : RG_PROTO_LL);
        }
    }
}

static void pcie_tables_hold_to_the_spread_of_staged_copies(void **state)
{
    skip_without(SHARED("measured/l40s/nccl.csv"));
    rg_error_summary small, big;
    table_errors(state, "pcie-l40s", SHARED("measured/l40s/nccl.csv"), false, &small, &big);
    /* eight ranks over two sockets: equal rows differ by up to 20 %, and bandwidth changes twofold
     * with the operation in a way that no link rate explains */
    assert_true(small.median_ape < 0.16 && big.median_ape < 0.12);
}

static void constants_of_one_generation_carry_to_the_next(void **state)
{
    skip_without(SHARED("measured/h200_sxm/nccl.csv"));
    /* The A100's constants on the H200's links, with one figure of the H200: its software floor. */
    rg_cluster *a100, *h200;
    assert_ok(rg_cluster_load(*state, "dgx-a100-80gb", &a100, &err));
    assert_ok(rg_cluster_load(*state, "hgx-h200", &h200, &err));
    rg_coll_constants c = rg_coll_constants_of(a100);
    const rg_coll_constants own = rg_coll_constants_of(h200);
    c.base_us = own.base_us;
    c.wide_base_us = own.wide_base_us;
    rg_coll_context *x;
    assert_ok(rg_coll_prepare(*state, h200, &c, &x, &err));
    static double predicted[MOST_ROWS], measured[MOST_ROWS], scratch[MOST_ROWS];
    size_t n = 0;
    rg_csv *csv;
    assert_ok(rg_csv_open(*state, SHARED("measured/h200_sxm/nccl.csv"), &csv, &err));
    for (bool more = true;;) {
        assert_ok(rg_csv_next(csv, &more, &err));
        if (!more)
            break;
        rg_coll_op op;
        int64_t ranks;
        double bytes, us;
        assert_ok(rg_coll_op_parse(rg_csv_text(csv, rg_csv_find(csv, "op")), &op, &err));
        assert_ok(rg_csv_int(csv, rg_csv_find(csv, "ranks"), &ranks, &err));
        assert_ok(rg_csv_real(csv, rg_csv_find(csv, "bytes"), &bytes, &err));
        assert_ok(rg_csv_real(csv, rg_csv_find(csv, "time_us"), &us, &err));
        predicted[n] = predict(x, op, ranks, bytes,
                               strcmp(rg_csv_text(csv, rg_csv_find(csv, "dtype")), "int8") == 0,
                               RG_LIB_NCCL, 0);
        measured[n++] = us * 1e-6;
    }
    rg_csv_close(csv);
    const rg_error_summary e = rg_stat_errors(predicted, measured, n, scratch);
    print_message("A100 constants on H200: median %.1f %% p90 %.1f %%\n", 100 * e.median_ape,
                  100 * e.p90_ape);
    assert_true(e.median_ape < 0.12);
}

static void log_errors(void **state, const char *path, int64_t nodes, int64_t local, double limit)
{
    skip_without(path);
    rg_cluster *cluster;
    rg_coll_context *x;
    rg_run *log;
    assert_ok(rg_cluster_load(*state, "hgx-h100", &cluster, &err));
    cluster->nodes = nodes;
    assert_ok(rg_coll_prepare(*state, cluster, NULL, &x, &err));
    assert_ok(rg_run_load(*state, path, NULL, &log, &err));
    static double predicted[MOST_ROWS], measured[MOST_ROWS], scratch[MOST_ROWS];
    size_t n = 0;
    for (int i = 0; i < log->count; i++) {
        const rg_run_entry *e = &log->entries[i];
        const char *bytes = strstr(e->problem, "bytes=");
        if (strstr(e->problem, "in-place") != NULL || bytes == NULL || e->sample_count < 1)
            continue;
        const double size = strtod(bytes + 6, NULL);
        if (size < 1 << 20)
            continue;
        predicted[n] =
            predict(x, RG_COLL_ALL_REDUCE, (int64_t)e->rank_count, size, false, RG_LIB_NCCL, local);
        measured[n++] = e->samples[0];
    }
    assert_true(n > 4);
    const rg_error_summary e = rg_stat_errors(predicted, measured, n, scratch);
    print_message("%s: median %.1f %%, worst tenth %.1f %%\n", path, 100 * e.median_ape,
                  100 * e.p90_ape);
    assert_true(e.median_ape < limit);
}

static void a_log_of_a_device_not_fitted_to_holds(void **state)
{
    log_errors(state, SHARED("inputs/files/nccl_allreduce_h100x8_nvls.log"), 1, 0, 0.08);
}

static void a_log_of_two_nodes_holds_at_size(void **state)
{
    log_errors(state, SHARED("inputs/files/nccl_allreduce_h100x4_2nodes_outlier.log"), 2, 2, 0.08);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nvlink_tables_hold_with_few_constants, setup, teardown),
        cmocka_unit_test_setup_teardown(engines_and_libraries_turn_where_their_sources_say, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(pcie_tables_hold_to_the_spread_of_staged_copies, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(constants_of_one_generation_carry_to_the_next, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_log_of_a_device_not_fitted_to_holds, setup, teardown),
        cmocka_unit_test_setup_teardown(a_log_of_two_nodes_holds_at_size, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
