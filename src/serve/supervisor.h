/* supervisor: starts, replaces and stops the children of the master.
 *
 * Each position has a listening socket that outlives its workers.  One worker serves it.  When the worker is
 * due for replacement (settings, age), its successor is started on the same socket first; the old worker
 * drains only once the successor is ready.  A worker that died is replaced at once, on another entry if its
 * own is in doubt; the recovery process repairs that entry independently. */
#ifndef STAMPD_SERVE_SUPERVISOR_H
#define STAMPD_SERVE_SUPERVISOR_H

#include "base/settings.h"
#include "base/stop.h"
#include "segment/segment.h"
#include "serve/in_flight.h"
#include "serve/instance.h"

struct heritage;
struct supervisor;

/* `listeners`, one for each position (heritage.h), and `settings` are borrowed for the supervisor's lifetime;
 * `live_listener` is the socket of the process for live events, `live_run` its main function;
 * `files_listener` that of the decrypter. */
struct supervisor *supervisor_create(const struct settings *settings, struct segment *segment,
                                     struct instance *instance, struct in_flight *in_flight,
                                     const int *listeners, int positions, int live_listener,
                                     int files_listener, int (*live_run)(const struct heritage *heritage))
    __attribute__((returns_nonnull));
void supervisor_destroy(struct supervisor *supervisor);

/* Readable when a child has sent a message: then call supervisor_receive. */
int supervisor_descriptor(const struct supervisor *supervisor);
void supervisor_receive(struct supervisor *supervisor);
/* After SIGCHLD: reaps the children that have died. */
void supervisor_reap(struct supervisor *supervisor);
/* Called often, and after each of the above: starts missing children, ends overdue ones. */
void supervisor_tend(struct supervisor *supervisor);

/* Applies new `settings`: replaces all children one by one.  The former settings may be freed. */
void supervisor_renew(struct supervisor *supervisor, const struct settings *settings);
/* Starts no more children and signals all to stop; may be called again with a stricter `how`. */
void supervisor_stop(struct supervisor *supervisor, enum stop how);
/* Is each position served, and the one for live events? */
bool supervisor_is_ready(const struct supervisor *supervisor);
/* No child is left. */
bool supervisor_is_empty(const struct supervisor *supervisor);

#endif
