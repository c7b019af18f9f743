/* tests/unit/hw/test_power.c: watts, energy and carbon. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "hw/power.h"

static rg_cluster *hgx(rg_arena *arena)
{
    rg_err err = {0};
    rg_cluster *cluster = NULL;
    assert_ok(rg_cluster_load(arena, "hgx-h200", &cluster, &err));
    return cluster;
}

static double watts(const rg_accel *accel, double compute_ratio, double memory_ratio)
{
    rg_err err = {0};
    rg_watts power;
    assert_ok(rg_accel_power(accel, compute_ratio, memory_ratio, &power, &err));
    return power.v;
}

/* H200: 75 W idle, 700 W TDP; decode at full bandwidth 75 + 625 x 0.36 = 300 W. */
static void power_runs_from_idle_to_tdp(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_accel *accel = hgx(arena)->accel;
    assert_close(watts(accel, 0, 0), 75, 1e-12);
    assert_close(watts(accel, 0, 1), 300, 1e-12);
    assert_close(watts(accel, 0.78, 0), 700, 1e-12);
    assert_close(watts(accel, 1, 1), 700, 1e-12);
    rg_arena_free(arena);
}

static void more_work_never_draws_less(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_accel *accel = hgx(arena)->accel;
    for (int c = 0; c < 10; c++)
        for (int m = 0; m < 10; m++) {
            const double here = watts(accel, 0.1 * c, 0.1 * m);
            assert_true(watts(accel, 0.1 * (c + 1), 0.1 * m) >= here);
            assert_true(watts(accel, 0.1 * c, 0.1 * (m + 1)) >= here);
        }
    rg_arena_free(arena);
}

/* Eight devices at 500 W for an hour: 4 kWh; their node adds 4.6 kWh (10.2 kW less 8 x 700 W);
 * overhead 1.2 makes 10.32 kWh of the 8.6; at 400 g/kWh 4128 g, at 0.1 $/kWh 1.032 $. */
static void energy_counts_devices_hosts_and_site(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(64);
    const rg_site site = {1.2, 400, 0.1};
    rg_energy_account account;
    assert_ok(rg_energy_of(hgx(arena), 8, RG_W(500), RG_S(3600), &site, &account, &err));
    assert_close(account.devices.v, 4 * 3.6e6, 1e-12);
    assert_close(account.hosts.v, 4.6 * 3.6e6, 1e-12);
    assert_close(account.total.v, 10.32 * 3.6e6, 1e-12);
    assert_close(account.devices.v + account.hosts.v + account.site.v, account.total.v, 1e-12);
    assert_close(account.carbon_g, 4128, 1e-12);
    assert_close(account.electricity.v, 1.032, 1e-12);
    rg_arena_free(arena);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(64);
    const rg_cluster *cluster = hgx(arena);
    rg_watts power;
    rg_energy_account account;
    const rg_site below = {0.9, 0, 0}, fine = {1, 0, 0};
    assert_int_equal(rg_accel_power(cluster->accel, -1, 0, &power, &err), RG_ERR_MODEL);
    assert_int_equal(rg_accel_power(cluster->accel, (double)NAN, 0, &power, &err), RG_ERR_MODEL);
    assert_int_equal(rg_energy_of(cluster, 1, RG_W(1), RG_S(1), &below, &account, &err),
                     RG_ERR_MODEL);
    assert_int_equal(rg_energy_of(cluster, 1, RG_W(1), RG_S(-1), &fine, &account, &err),
                     RG_ERR_MODEL);
    rg_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_runs_from_idle_to_tdp),
        cmocka_unit_test(more_work_never_draws_less),
        cmocka_unit_test(energy_counts_devices_hosts_and_site),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
