/* Names of points in a roofline figure: each near its point, none over another. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <math.h>
#include <stdbool.h>

#include "cli/roof_labels.h"

static const double area_width = 670.0, area_height = 530.0;

static bool meet(const rg_roof_box *a, const rg_roof_box *b)
{
    return fabs(a->x - b->x) < 0.5 * (a->width + b->width) &&
           fabs(a->y - b->y) < 0.5 * (a->height + b->height);
}

static void a_lone_name_stands_to_the_right_of_its_point(void **state)
{
    (void)state;
    const rg_roof_box point = {300, 200, 10, 10};
    rg_roof_box label = {.width = 20, .height = 11};
    rg_roof_place_labels(&label, &point, 1, NULL, 0, area_width, area_height);
    assert_close(label.x, 300 + 5 + 5 + 10, 1e-12); /* half a point, the gap, half a name */
    assert_close(label.y, 200, 1e-12);
}

static void names_stay_inside_at_the_right_edge(void **state)
{
    (void)state;
    const rg_roof_box point = {area_width - 5, 200, 10, 10};
    rg_roof_box label = {.width = 20, .height = 11};
    rg_roof_place_labels(&label, &point, 1, NULL, 0, area_width, area_height);
    assert_true(label.x + 10 <= area_width);
}

/* Twelve points on one spot, as equal projections have, with a roof's name through the middle. */
static void a_crowd_covers_nothing(void **state)
{
    (void)state;
    enum { CROWD = 12 };
    rg_roof_box points[CROWD], labels[CROWD];
    const rg_roof_box roof = {360, 215, 100, 11};
    for (int i = 0; i < CROWD; i++) {
        points[i] = (rg_roof_box){300 + 2 * i, 200 + i, 10, 10};
        labels[i] = (rg_roof_box){.width = 21, .height = 11};
    }
    rg_roof_place_labels(labels, points, CROWD, &roof, 1, area_width, area_height);
    for (int i = 0; i < CROWD; i++) {
        assert_false(meet(&labels[i], &roof));
        for (int j = 0; j < CROWD; j++) {
            assert_false(meet(&labels[i], &points[j]));
            assert_false(i != j && meet(&labels[i], &labels[j]));
        }
        assert_true(hypot(labels[i].x - points[i].x, labels[i].y - points[i].y) < 150);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_name_stands_to_the_right_of_its_point),
        cmocka_unit_test(names_stay_inside_at_the_right_edge),
        cmocka_unit_test(a_crowd_covers_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
