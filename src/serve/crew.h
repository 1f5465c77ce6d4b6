/* crew: the children of the master: which there are, which there should be, and the way from the one to the
 * other.
 *
 * Each position has a listening socket that outlives its workers.  One worker serves it; when it is to be
 * replaced (settings, age), its successor is started on the same socket first, and only when that one is
 * ready the old one is told to drain.  A worker that died is replaced at once, on another entry when its own
 * is in doubt; the heir of that entry works alone. */
#ifndef STAMPD_SERVE_CREW_H
#define STAMPD_SERVE_CREW_H

#include "base/settings.h"
#include "base/stop.h"
#include "document/stamps.h"
#include "serve/begun.h"
#include "serve/instance.h"

struct crew;

/* `listeners`, one a position, and `settings` are borrowed for as long as the crew lives; `live_listener` is
 * the socket of the process for live events. */
struct crew *crew_create(const struct settings *settings, struct stamps *stamps, struct instance *instance,
                         struct begun *begun, const int *listeners, int positions, int live_listener)
    __attribute__((returns_nonnull));
void crew_destroy(struct crew *crew);

/* Readable when a child has something to say: then crew_hear. */
int crew_descriptor(const struct crew *crew);
void crew_hear(struct crew *crew);
/* After SIGCHLD: buries all who died. */
void crew_reap(struct crew *crew);
/* Often, and after each of the above: starts who is missing, ends who is overdue. */
void crew_tend(struct crew *crew);

/* From now on `settings` hold: replaces all children one by one.  The former settings may be freed. */
void crew_renew(struct crew *crew, const struct settings *settings);
/* Starts nobody any more and tells all to stop; may be told again, more strictly. */
void crew_stop(struct crew *crew, enum stop how);
/* Is each position served, and the one for live events? */
bool crew_is_ready(const struct crew *crew);
/* Nobody is left. */
bool crew_is_empty(const struct crew *crew);

#endif
