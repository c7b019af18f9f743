// SPDX-License-Identifier: Apache-2.0
#include "core/rng.h"

double rg_rng_normal(rg_rng *rng)
{
    const double radius = sqrt(2.0 * rg_rng_exponential(rng));
    return radius * cos(6.283185307179586 * rg_rng_real(rng));
}

double rg_rng_gamma(rg_rng *rng, double shape)
{
    /* Shapes below 1 by the boost: gamma(a) = gamma(a + 1) U^(1/a). */
    double factor = 1.0;
    if (shape < 1.0) {
        factor = pow(1.0 - rg_rng_real(rng), 1.0 / shape);
        shape += 1.0;
    }
    const double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        const double x = rg_rng_normal(rng);
        const double t = 1.0 + c * x;
        if (t <= 0.0)
            continue;
        const double v = t * t * t, u = 1.0 - rg_rng_real(rng);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return factor * d * v;
    }
}
