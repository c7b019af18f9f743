/* ridge.h: the whole library, in reading order.
 *
 * Hardware and model files go in at the top; each layer reads only layers above it. A program that
 * links libridge.a includes this header, or those of the layers it uses.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_RIDGE_H
#define RG_RIDGE_H

/* core: errors, memory, units, documents, tables */
#include "core/err.h"
#include "core/arena.h"
#include "core/units.h"
#include "core/quantity.h"
#include "core/dtype.h"
#include "core/doc.h"
#include "core/csv.h"

/* what there is: devices, clusters, models, traffic */
#include "hw/accel.h"
#include "hw/cluster.h"
#include "model/spec.h"
#include "model/op.h"
#include "model/pass.h"
#include "trace/req.h"
#include "trace/run.h"

/* how long things take: bounds, on-chip network, links, one operator, one pass */
#include "roofline/roofline.h"
#include "noc/sim.h"
#include "net/coll.h"
#include "kernel/kernel.h"
#include "step/step.h"
#include "step/estimate.h"

/* what users get, what to believe, what to buy */
#include "serve/serve.h"
#include "fit/compare.h"
#include "fit/guard.h"
#include "plan/cell.h"
#include "plan/sweep.h"

#endif
