/* host_metrics: what is known of the hosts that hold the records of spread namespaces together, as z has it:
 * metrics, and a list for the console.  Nothing where this host is none of them, or its stamp-journal does
 * not run. */
#ifndef STAMPD_SERVE_METRICS_HOST_METRICS_H
#define STAMPD_SERVE_METRICS_HOST_METRICS_H

#include "base/builder.h"
#include "records/records_host.h"

/* `records` NULL: nothing. */
void host_metrics_write(const struct records *records, struct builder *out);
/* The member "hosts" and its comma. */
void host_metrics_write_list(const struct records *records, struct builder *out);

#endif
