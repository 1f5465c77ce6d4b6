/* metrics_exporter: the process that sends the metrics of this instance to a collector (serve/collector.h).
 *
 * It runs where metrics_url is set, and sends what /metrics shows (probe.h) each metrics_interval_s, and
 * once more before it ends.  Counters are cumulative: a message that is dropped loses nothing but its
 * moment. */
#ifndef STAMPD_SERVE_METRICS_METRICS_EXPORTER_H
#define STAMPD_SERVE_METRICS_METRICS_EXPORTER_H

#include "serve/heritage.h"

/* Runs until SIGTERM or SIGQUIT; returns the status of the process. */
int metrics_exporter_run(const struct heritage *heritage);

#endif
