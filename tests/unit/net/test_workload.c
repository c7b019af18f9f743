/* A workload's graph on links: times by hand from those of single collectives. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "net/workload.h"
#include "net_fixture.h"

typedef struct bench {
    rg_arena *arena;
    rg_coll_context *links;
    rg_workload_setup setup;
} bench;

static bench new_bench(int64_t per_node, int64_t nodes)
{
    rg_err err = {0};
    bench b = {.arena = rg_arena_new(64)};
    rg_cluster *cluster = RG_NEW(b.arena, rg_cluster, 1, &err);
    assert_non_null(cluster);
    *cluster = switched_cluster(per_node, nodes);
    assert_ok(rg_coll_prepare(b.arena, cluster, NULL, &b.links, &err));
    b.setup = (rg_workload_setup){.base = {.library = RG_LIB_NCCL},
                                  .ranks = per_node * nodes,
                                  .flops = RG_FPS(1e12),
                                  .memory = RG_BPS(1e11)};
    return b;
}

static double alone_s(const bench *b, rg_coll_op op, int64_t ranks, int64_t stride, double bytes)
{
    rg_err err = {0};
    rg_coll_query q = b->setup.base;
    rg_coll_result r;
    q.op = op;
    q.ranks = ranks;
    q.stride = stride;
    q.bytes = RG_B(bytes);
    assert_ok(rg_coll_time(b->links, &q, &r, &err));
    return r.time.v;
}

static const uint64_t after_1[] = {1}, after_2[] = {2}, after_3[] = {3};

static void communication_beside_compute_is_hidden(void **state)
{
    (void)state;
    rg_err err = {0};
    bench b = new_bench(8, 1);
    const double reduce_s = alone_s(&b, RG_COLL_ALL_REDUCE, 8, 1, 1 << 26);
    rg_work_node nodes[] = {
        {.id = 1, .name = "a", .kind = RG_WORK_COMPUTE, .time_s = 1e-3},
        {.id = 2,
         .name = "r",
         .kind = RG_WORK_COMM,
         .op = "all_reduce",
         .bytes = 1 << 26,
         .after = after_1,
         .after_count = 1},
        {.id = 3,
         .name = "b",
         .kind = RG_WORK_COMPUTE,
         .time_s = reduce_s / 2,
         .after = after_1,
         .after_count = 1},
    };
    const rg_workload w = {.tool = "chakra", .nodes = nodes, .count = 3};
    rg_workload_result r;
    assert_ok(rg_workload_run(b.arena, b.links, &w, &b.setup, &r, &err));
    assert_close(r.end.v, 1e-3 + reduce_s, 1e-12);
    assert_close(r.comm.v, reduce_s, 1e-12);
    assert_close(r.exposed.v, reduce_s / 2, 1e-9);
    assert_int_equal(r.class_count, 1);
    rg_arena_free(b.arena);
}

static void one_network_does_one_thing_at_a_time(void **state)
{
    (void)state;
    rg_err err = {0};
    bench b = new_bench(8, 1);
    const double gather_s = alone_s(&b, RG_COLL_ALL_GATHER, 8, 1, 8 << 20);
    rg_work_node nodes[] = {
        {.id = 5,
         .name = "x",
         .kind = RG_WORK_COMM,
         .op = "all_gather",
         .bytes = 1 << 20,
         .bytes_a_rank = true},
        {.id = 6, .name = "y", .kind = RG_WORK_COMM, .op = "all_gather", .bytes = 8 << 20},
    };
    const rg_workload w = {.tool = "chakra", .nodes = nodes, .count = 2};
    rg_workload_result r;
    assert_ok(rg_workload_run(b.arena, b.links, &w, &b.setup, &r, &err));
    assert_close(r.end.v, 2 * gather_s, 1e-12);
    assert_close(r.exposed.v, r.comm.v, 1e-12);
    assert_int_equal(r.class_count, 1); /* 1 MiB from each of 8 is 8 MiB gathered */
    assert_int_equal(r.classes[0].count, 2);
    rg_arena_free(b.arena);
}

static void groups_follow_from_the_degrees(void **state)
{
    (void)state;
    rg_err err = {0};
    bench b = new_bench(8, 4);
    static const struct {
        rg_work_group group;
        int64_t ranks, stride;
    } want[] = {{RG_GROUP_TENSOR, 4, 1},
                {RG_GROUP_EXPERT, 2, 4},
                {RG_GROUP_DATA, 8, 4},
                {RG_GROUP_DATA_EXPERT, 4, 8},
                {RG_GROUP_ALL, 32, 1}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        rg_work_node node = {.id = 1,
                             .name = "r",
                             .kind = RG_WORK_COMM,
                             .op = "all_reduce",
                             .bytes = 1 << 20,
                             .group = want[i].group};
        const rg_workload w = {.tool = "simai",
                               .nodes = &node,
                               .count = 1,
                               .tensor = 4,
                               .expert = 2,
                               .pipeline = 1,
                               .ranks = 32};
        rg_workload_result r;
        assert_ok(rg_workload_run(b.arena, b.links, &w, &b.setup, &r, &err));
        assert_close(r.end.v,
                     alone_s(&b, RG_COLL_ALL_REDUCE, want[i].ranks, want[i].stride, 1 << 20),
                     1e-12);
    }
    rg_arena_free(b.arena);
}

static void time_from_flops_is_the_roofline(void **state)
{
    (void)state;
    rg_err err = {0};
    bench b = new_bench(8, 1);
    rg_work_node nodes[] = {
        {.id = 1,
         .name = "c",
         .kind = RG_WORK_COMPUTE,
         .time_s = NAN,
         .flops = 2e9,
         .memory_bytes = 1e6},
        {.id = 2,
         .name = "m",
         .kind = RG_WORK_COMPUTE,
         .time_s = NAN,
         .flops = 2e6,
         .memory_bytes = 1e9,
         .after = after_1,
         .after_count = 1},
        {.id = 3, .name = "h", .kind = RG_WORK_HOST, .time_s = 1e-3},
    };
    const rg_workload w = {.tool = "chakra", .nodes = nodes, .count = 3};
    rg_workload_result r;
    assert_ok(rg_workload_run(b.arena, b.links, &w, &b.setup, &r, &err));
    assert_close(r.end.v, 2e-3 + 1e-2, 1e-12);
    assert_int_equal(r.estimated_nodes, 2);
    assert_close(r.host.v, 1e-3, 1e-12);
    rg_arena_free(b.arena);
}

static void circles_and_odd_degrees_are_refused(void **state)
{
    (void)state;
    bench b = new_bench(8, 1);
    rg_work_node nodes[] = {
        {.id = 1, .name = "free", .kind = RG_WORK_COMPUTE, .time_s = 1},
        {.id = 2,
         .name = "a",
         .kind = RG_WORK_COMPUTE,
         .time_s = 1,
         .after = after_3,
         .after_count = 1},
        {.id = 3,
         .name = "b",
         .kind = RG_WORK_COMPUTE,
         .time_s = 1,
         .after = after_2,
         .after_count = 1},
    };
    const rg_workload circle = {.tool = "chakra", .nodes = nodes, .count = 3};
    rg_workload_result r;
    rg_err err = {0};
    assert_int_equal(rg_workload_run(b.arena, b.links, &circle, &b.setup, &r, &err), RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "in a circle"));
    rg_work_node reduce = {.id = 1,
                           .name = "r",
                           .kind = RG_WORK_COMM,
                           .op = "all_reduce",
                           .bytes = 64,
                           .group = RG_GROUP_DATA};
    const rg_workload odd = {
        .tool = "simai", .nodes = &reduce, .count = 1, .tensor = 3, .ranks = 8};
    err = (rg_err){0};
    assert_int_equal(rg_workload_run(b.arena, b.links, &odd, &b.setup, &r, &err), RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "do not divide"));
    rg_arena_free(b.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communication_beside_compute_is_hidden),
        cmocka_unit_test(one_network_does_one_thing_at_a_time),
        cmocka_unit_test(groups_follow_from_the_degrees),
        cmocka_unit_test(time_from_flops_is_the_roofline),
        cmocka_unit_test(circles_and_odd_degrees_are_refused),
    };
    return cmocka_run_group_tests_name("net workload", tests, NULL, NULL);
}
