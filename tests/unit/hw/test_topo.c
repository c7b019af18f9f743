/* Connection matrices of nvidia-smi topo -m. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "hw/topo.h"

static rg_topo parsed(const char *text)
{
    rg_err err = {0};
    rg_topo t;
    assert_ok(rg_topo_parse("topo.txt", text, &t, &err));
    return t;
}

static void nvlink_of_every_pair(void **state)
{
    (void)state;
    const rg_topo t = parsed("\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
                             "GPU0\t X \tNV18\tNV18\tPIX\t0-47\t0\tN/A\n"
                             "GPU1\tNV18\t X \tNV18\tSYS\t0-47\t0\tN/A\n"
                             "GPU2\tNV18\tNV18\t X \tSYS\t48-95\t1\tN/A\r\n"
                             "NIC0\tPIX\tSYS\tSYS\t X \n\nLegend:\n\n  X    = Self\n");
    const rg_topo_shape s = rg_topo_shape_of(&t);
    assert_int_equal(t.devices, 3);
    assert_int_equal(t.nics, 1);
    assert_int_equal(t.missing, 0);
    assert_int_equal(s.all_pairs, 18);
    assert_int_equal(s.most_links, 36);
    assert_int_equal(s.bridged, 0);
    assert_int_equal(s.socket_size, 2);
}

static void pcie_switches_and_sockets(void **state)
{
    (void)state;
    const rg_topo t = parsed("        GPU0 GPU1 GPU2 GPU3 CPU Affinity\n"
                             "GPU0     X   PIX  NODE SYS\n"
                             "GPU1    PIX   X   NODE SYS\n"
                             "GPU2    NODE NODE  X   SYS\n"
                             "GPU3    SYS  SYS  SYS   X\n");
    const rg_topo_shape s = rg_topo_shape_of(&t);
    assert_int_equal(s.all_pairs, 0);
    assert_int_equal(s.switch_size, 2);
    assert_int_equal(s.socket_size, 3);
}

static void bridged_pairs_are_counted(void **state)
{
    (void)state;
    const rg_topo t = parsed("     GPU0 GPU1 GPU2 GPU3 CPU Affinity NUMA Affinity\n"
                             "GPU0  X   NV12 SYS  SYS 0-7 0\n"
                             "GPU1 NV12  X   SYS  SYS 0-7 0\n"
                             "GPU2 SYS  SYS   X   NV12 8-15 1\n"
                             "GPU3 SYS  SYS  NV12  X   8-15 1\n");
    const rg_topo_shape s = rg_topo_shape_of(&t);
    assert_int_equal(s.bridged, 4);
    assert_int_equal(s.most_links, 12);
    assert_int_equal(s.socket_size, 2);
    assert_int_equal(s.switch_size, 1);
}

static void one_missing_row_follows_from_the_columns(void **state)
{
    (void)state;
    const rg_topo t = parsed("     GPU0 GPU1\nGPU0  X   PHB\n");
    assert_int_equal(t.missing, 1);
    assert_int_equal(t.way[1][0], RG_WAY_HOST_BRIDGE);
}

static void mistakes_have_a_line_and_a_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
        int line, column;
    } cases[] = {
        {"hello\n", "this is not what", 1, 1},
        {" GPU0 GPU1\nGPU0 X NVX\nGPU1 NVX X\n", "'NVX' is no connection", 2, 8},
        {" GPU0 GPU1\nGPU0 X\nGPU1 SYS X\n", "the row ends after 1 of 2", 2, 7},
        {" GPU0 GPU1\nGPU0 SYS SYS\nGPU1 SYS X\n", "'SYS' where row GPU0 meets", 2, 6},
        {" GPU0 GPU1\nGPU0 X SYS\nGPU1 PIX X\n", "see each other differently", 3, 1},
        {" GPU0 GPU1\nGPU0 X SYS\nGPU0 X SYS\n", "stands there twice", 3, 1},
        {" GPU0 GPU1\nGPU7 X SYS\n", "has no column", 2, 1},
        {" GPU0 GPU1 GPU2\nGPU0 X SYS SYS\n", "2 of 3 rows are missing", 3, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rg_err err = {0};
        rg_topo t;
        assert_int_equal(rg_topo_parse("t", cases[i].text, &t, &err), RG_ERR_INPUT);
        if (strstr(err.text, cases[i].want) == NULL)
            print_error("case %zu: %s\n", i, err.text);
        assert_non_null(strstr(err.text, cases[i].want));
        assert_int_equal(err.pos.line, cases[i].line);
        assert_int_equal(err.pos.column, cases[i].column);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvlink_of_every_pair),
        cmocka_unit_test(pcie_switches_and_sockets),
        cmocka_unit_test(bridged_pairs_are_counted),
        cmocka_unit_test(one_missing_row_follows_from_the_columns),
        cmocka_unit_test(mistakes_have_a_line_and_a_column),
    };
    return cmocka_run_group_tests_name("hw topo", tests, NULL, NULL);
}
