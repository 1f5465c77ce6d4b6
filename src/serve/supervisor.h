/* supervisor: the children of the master: which there are, which there should be, and the way from the one to
 * the other.
 *
 * Each position has a listening socket that outlives its workers.  One worker serves it; when it is to be
 * replaced (settings, age), its successor is started on the same socket first, and only when that one is
 * ready the old one is told to drain.  A worker that died is replaced at once, on another entry when its own
 * is in doubt; the recovery process of that entry works alone. */
#ifndef STAMPD_SERVE_SUPERVISOR_H
#define STAMPD_SERVE_SUPERVISOR_H

#include "base/settings.h"
#include "base/stop.h"
#include "segment/segment.h"
#include "serve/in_flight.h"
#include "serve/instance.h"

struct heritage;
struct supervisor;

/* `listeners`, one a position, and `settings` are borrowed for as long as the supervisor lives;
 * `live_listener` is the socket of the process for live events, `live_run` its main function. */
struct supervisor *supervisor_create(const struct settings *settings, struct segment *segment,
                                     struct instance *instance, struct in_flight *in_flight,
                                     const int *listeners, int positions, int live_listener,
                                     int (*live_run)(const struct heritage *heritage))
    __attribute__((returns_nonnull));
void supervisor_destroy(struct supervisor *supervisor);

/* Readable when a child has something to say: then supervisor_hear. */
int supervisor_descriptor(const struct supervisor *supervisor);
void supervisor_hear(struct supervisor *supervisor);
/* After SIGCHLD: buries all who died. */
void supervisor_reap(struct supervisor *supervisor);
/* Often, and after each of the above: starts who is missing, ends who is overdue. */
void supervisor_tend(struct supervisor *supervisor);

/* From now on `settings` hold: replaces all children one by one.  The former settings may be freed. */
void supervisor_renew(struct supervisor *supervisor, const struct settings *settings);
/* Starts nobody any more and tells all to stop; may be told again, more strictly. */
void supervisor_stop(struct supervisor *supervisor, enum stop how);
/* Is each position served, and the one for live events? */
bool supervisor_is_ready(const struct supervisor *supervisor);
/* Nobody is left. */
bool supervisor_is_empty(const struct supervisor *supervisor);

#endif
