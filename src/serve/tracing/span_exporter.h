/* span_exporter: the process that sends the spans of traced requests to a collector (serve/collector.h).
 *
 * It runs where trace_url is set.  Spans that the collector does not accept are dropped and counted. */
#ifndef STAMPD_SERVE_TRACING_SPAN_EXPORTER_H
#define STAMPD_SERVE_TRACING_SPAN_EXPORTER_H

#include "base/settings.h"
#include "segment/segment.h"

/* Runs until SIGTERM or SIGQUIT; sends what is there before it ends. */
void span_exporter_run(const struct settings *settings, struct segment *segment);

#endif
