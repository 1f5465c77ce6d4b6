/* span_exporter: the process that sends the spans of traced requests to a collector, by OTLP over HTTP with
 * JSON.
 *
 * It runs where trace_url is set.  A batch that the collector does not accept is dropped and counted, and so
 * is everything of the next seconds: nothing is kept for a collector that is away. */
#ifndef STAMPD_SERVE_TRACING_SPAN_EXPORTER_H
#define STAMPD_SERVE_TRACING_SPAN_EXPORTER_H

#include "base/settings.h"
#include "segment/segment.h"

/* Runs until SIGTERM or SIGQUIT; sends what is there before it ends. */
void span_exporter_run(const struct settings *settings, struct segment *segment);

#endif
