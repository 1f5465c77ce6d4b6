/* nginx_counts: counts what nginx refuses by itself, before a worker sees it.
 *
 * nginx sends a line of its log for each such request, in the form of syslog, to a socket of the relay.  It
 * never waits: what the socket cannot hold is lost, so in a flood the counters show less than there was.
 * Whoever may write to the socket can make them show more, and do nothing else. */
#ifndef STAMPD_SERVE_METRICS_NGINX_COUNTS_H
#define STAMPD_SERVE_METRICS_NGINX_COUNTS_H

#include "base/settings.h"
#include "segment/segment.h"

struct nginx_counts;

/* Takes the place of the socket that was there, which may still be another relay's.  NULL: it cannot, which
 * is logged. */
struct nginx_counts *nginx_counts_open(const struct settings *settings);
void nginx_counts_close(struct nginx_counts *counts);           /* NULL is allowed */
int nginx_counts_descriptor(const struct nginx_counts *counts); /* NULL: -1 */
/* Removes the path, when no relay will follow. */
void nginx_counts_remove(const struct settings *settings);
/* Counts what has arrived, a limited number. */
void nginx_counts_receive(struct nginx_counts *counts, struct segment *segment);

#endif
