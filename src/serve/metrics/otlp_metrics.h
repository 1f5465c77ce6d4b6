/* otlp_metrics: a page of /metrics as metrics of OTLP, in JSON.
 *
 * The page alone decides which metrics there are, their names, labels and values: this translates its text.
 * Counters are cumulative sums, histograms keep their bounds.  A metric without values is left out. */
#ifndef STAMPD_SERVE_METRICS_OTLP_METRICS_H
#define STAMPD_SERVE_METRICS_OTLP_METRICS_H

#include "base/builder.h"

/* Appends the members of the list "metrics".  Both times are milliseconds since the epoch: when the counters
 * began, and when the page was written. */
void otlp_metrics_add(struct bytes page, int64_t begin_ms, int64_t now_ms, struct builder *out);

#endif
