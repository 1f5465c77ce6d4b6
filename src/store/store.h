/* store: a worker's sessions with PostgreSQL, one per namespace, opened on first use.  Independent of caches
 * and slot stamps. One header for each idea: store_load.h, store_commit.h, store_list.h, store_search.h,
 * store_collection.h, store_stream.h, store_copies.h, store_schema.h, store_idempotency.h,
 * store_subscriptions.h, store_tasks.h, store_cron.h. */
#ifndef STAMPD_STORE_STORE_H
#define STAMPD_STORE_STORE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"
#include "base/settings.h"
#include "segment/segment.h"

struct store;

struct store *store_create(const struct settings *settings, struct segment *segment);
/* Of standbys, for reads with an age alone: a session of it holds no lock. */
struct store *store_create_replica(const struct settings *settings, struct segment *segment);
/* The session is the one that store_is_young has asked last: a read may have opened another. */
MUST_USE bool store_stands(const struct store *store, int ns);
void store_destroy(struct store *store);
/* Does its standby show all that was acknowledged `tolerance_ms` ago?  Then what is read there shows all of
 * `as_of_ms_r`, of clock_monotonic_ms, if store_stands afterwards.  False: also when it cannot be asked. */
MUST_USE bool store_is_young(struct store *store, int ns, struct arena *arena, int64_t tolerance_ms,
                             int64_t *as_of_ms_r);
/* A read of the standby that began at `since_ms`, of clock_monotonic_ms, has failed. */
void store_note_failure(struct store *store, int ns, int64_t since_ms);

/* Opens a session for the namespace unless there is one; returns FAULT_XAWAY at once during the backoff
 * after failures. */
MUST_USE enum fault store_connect(struct store *store, int ns);
/* For the present request, until it has used a session of `ns`: none is opened if that would close one used
 * recently; FAULT_ELSEWHERE then, and another worker does the whole request.  A request that has had its
 * session may have committed, and is never done elsewhere. */
void store_set_visitor(struct store *store, int ns);
/* Also for a request that has changed something outside the database. */
void store_clear_visitor(struct store *store);
/* Whom the present request is from, who is not an administrator. */
struct store_requester {
    uint64_t client;      /* 0: the share of a client does not apply */
    struct bytes account; /* borrowed; NO_BYTES: none */
    int64_t since_ms;     /* when the request began, monotonic */
    bool has_time;        /* its reads and its commit may take as long as they need */
};
/* For the present request, until store_clear_requester: no more workers are at long requests than its
 * namespace, its client and its account may use; all its searches, lists and pages of collections together
 * take at most limit_read_ms, and a long commit limit_commit_ms. */
void store_set_requester(struct store *store, const struct store_requester *requester);
void store_clear_requester(struct store *store);
/* The limit that caused this fault of a long request, and its value; NULL: none. */
const char *store_reading_refused(const struct store *store, enum fault fault, int64_t *value_r);
/* Closes the session of the namespace and opens another: returns FAULT_NONE only when the old backend is
 * gone.  Tries for `limit_ms`. */
MUST_USE enum fault store_reconnect(struct store *store, int ns, int64_t limit_ms);

/* Between requests, now and then: closes the sessions that were not used for connection_idle_s; returns
 * whether there were any. */
bool store_rest(struct store *store);

/* A REPEATABLE READ transaction: loads between begin and end are of one instant.  Call end after a fault,
 * too. */
MUST_USE enum fault store_snapshot_begin(struct store *store, int ns);
void store_snapshot_end(struct store *store, int ns);

#endif
