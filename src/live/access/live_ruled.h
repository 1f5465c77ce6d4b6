/* live_ruled: changes of documents, held until they have been judged for each listener under rules.
 *
 * A listener in a namespace with the access "rules", or in which filters of modules apply
 * (operation/judge/filters.h), receives an event only of a document that its caller may read, judged on the
 * snapshot whose version the event has.  A change that somebody listens to is held in a queue until the
 * document has been loaded; then it is judged (live_judge.h).  A team on which a decision depends is loaded
 * with the document in a second query, so that both are of one instant.
 *
 * The queue is bounded.  When there is no room, all listeners under rules receive `reset`, which depends on
 * no document. */
#ifndef STAMPD_LIVE_ACCESS_LIVE_RULED_H
#define STAMPD_LIVE_ACCESS_LIVE_RULED_H

#include "live/live_audience.h"
#include "live/live_snapshot.h"

struct live_listener;
struct live_ruled;

/* `drain` handles all events of the change feed.  Both are borrowed. */
struct live_ruled *live_ruled_create(struct live_audience *audience, void (*drain)(void *context),
                                     void *context) __attribute__((returns_nonnull));
void live_ruled_destroy(struct live_ruled *ruled);

/* A document was committed; version 0: unknown. */
void live_ruled_add(struct live_ruled *ruled, struct bytes class, struct bytes id, int64_t version);
/* The document of the definition has changed since the last id of this listener: it is judged for it alone.
 */
void live_ruled_look(struct live_ruled *ruled, const struct live_listener *listener,
                     const struct definition *definition);
/* What has changed is not known: listeners under rules read everything, and their accounts are doubted. */
void live_ruled_lose(struct live_ruled *ruled);
/* The connection is closed: what is held will not be judged. */
void live_ruled_drop(struct live_ruled *ruled);

/* The query: is one due, its parameters, its result. */
bool live_ruled_is_due(const struct live_ruled *ruled);
void live_ruled_query(struct live_ruled *ruled, struct pg_params *params);
void live_ruled_take(struct live_ruled *ruled, struct live_snapshot *snapshot,
                     const struct pg_result *result);

/* All changes ever held, and those of them that were judged. */
uint64_t live_ruled_received(const struct live_ruled *ruled);
uint64_t live_ruled_judged(const struct live_ruled *ruled);

#endif
