/* live_audience: the listeners of one namespace, and all audiences of the process: their index, counts,
 * memory, and order.  What is done with listeners is in live_listener.h, which stands above. */
#ifndef STAMPD_LIVE_LIVE_AUDIENCE_H
#define STAMPD_LIVE_LIVE_AUDIENCE_H

#include "base/settings.h"
#include "live/live_horizon.h"
#include "live/topics/live_index.h"
#include "live/access/live_access.h"
#include "live/live_shares.h"
#include "segment/feed.h"

/* --- all of the process --- */
struct live_audiences;

struct live_records;
struct live_searches;
/* All are borrowed; `records` may be NULL when no listener names records, `searches` when none follows a
 * search. */
struct live_audiences *live_audiences_create(const struct settings *settings, struct subscriber *subscriber,
                                             struct live_records *records, struct live_searches *searches)
    __attribute__((returns_nonnull));
void live_audiences_destroy(struct live_audiences *audiences);        /* when no listeners are left */
size_t live_audiences_count(const struct live_audiences *audiences);  /* connections */
size_t live_audiences_memory(const struct live_audiences *audiences); /* of them, in bytes, about */
/* The client's share of them; NULL: it has no connection. */
const struct live_share *live_audiences_share(const struct live_audiences *audiences, uint64_t client);

/* --- a namespace --- */
struct live_audience;

/* `code`, `database` and `access` are borrowed and may change while it has no listeners. */
struct live_audience *live_audience_create(struct live_audiences *audiences, const char *code,
                                           const char *database, const struct live_access *access)
    __attribute__((returns_nonnull));
void live_audience_destroy(struct live_audience *audience);
/* The number of the namespace in the segment; -1: it has none.  Enter assigns it once the access has shown
 * that it is a namespace; false: the segment has no room.  Leave: it is another one now. */
MUST_USE bool live_audience_enter(struct live_audience *audience, struct segment *segment);
void live_audience_forget_number(struct live_audience *audience);
int live_audience_number(const struct live_audience *audience);
/* The key that signs ids of events.  False: it cannot be one, and there is none now; so also without data. */
bool live_audience_set_secret(struct live_audience *audience, struct bytes secret);
bool live_audience_has_secret(const struct live_audience *audience);
size_t live_audience_count(const struct live_audience *audience);
size_t live_audience_admitted(const struct live_audience *audience); /* which need its database */
size_t live_audience_memory(const struct live_audience *audience);
/* The definitions of listeners whose events are judged by rules (live_ruled.h), and of all others. */
struct live_index *live_audience_index(struct live_audience *audience);
/* What all open listeners have received; horizon 0: none is open. */
const struct live_horizon *live_audience_known(const struct live_audience *audience);
void live_audience_set_known(struct live_audience *audience, const struct live_horizon *known);

#endif
