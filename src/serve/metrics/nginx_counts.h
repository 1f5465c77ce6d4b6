/* nginx_counts: counts what nginx refuses by itself, before a worker sees it.
 *
 * nginx sends a line of its log for each such request, in the form of syslog, to a socket of the relay.  It
 * never waits: what the socket cannot hold is lost, so in a flood the counters show less than there was.
 * Whoever may write to the socket can make them show more, and do nothing else.
 *
 * The module of nginx sends the number of answers that it has given without a worker.
 *
 * nginx sends what it reports of a request there, too.  Its line has the whole address, in which ids of
 * documents, keys of attachments and credentials may stand: stampd logs the words and the client alone. */
#ifndef STAMPD_SERVE_METRICS_NGINX_COUNTS_H
#define STAMPD_SERVE_METRICS_NGINX_COUNTS_H

#include "base/bytes.h"
#include "base/settings.h"
#include "segment/segment.h"

enum { NGINX_ERROR_WORDS = 300 };

struct nginx_counts;

/* Takes the place of the socket that was there, which may still be another relay's.  NULL: it cannot, which
 * is logged. */
struct nginx_counts *nginx_counts_open(const struct settings *settings);
void nginx_counts_close(struct nginx_counts *counts);           /* NULL is allowed */
int nginx_counts_descriptor(const struct nginx_counts *counts); /* NULL: -1 */
/* Removes the path, when no relay will follow. */
void nginx_counts_remove(const struct settings *settings);
/* What nginx reports: without what it has quoted, and without the request. */
struct nginx_error {
    bool is_warning;
    char words[NGINX_ERROR_WORDS + 1], client[46]; /* "-": it names none */
};
/* Reads a line of nginx's error log that came by syslog with the tag "nginx"; false: it is none. */
MUST_USE bool nginx_counts_read_error(struct bytes line, struct nginx_error *error_r);
/* Counts, and logs, what has arrived, a limited number. */
void nginx_counts_receive(struct nginx_counts *counts, struct segment *segment);

#endif
