/* store_private: the sessions of a store, for the files of src/store and their tests only.  Lowest of the
 * folder: what runs statements, repeats reads and limits them stands above (store_run.h, store_long.h). */
#ifndef STAMPD_STORE_STORE_PRIVATE_H
#define STAMPD_STORE_STORE_PRIVATE_H

#include "edge/pg/pg.h"
#include "store/store.h"

const struct settings *store_settings(const struct store *store);
struct segment *store_segment(const struct store *store);
/* Time limit of a whole pipeline: each of its statements has statement_timeout, lock waits included. */
int64_t store_pipeline_ms(const struct store *store);

/* Whether this process, which waits for a commit of the store `whose`, is to be free for others. */
bool store_gives_up(void *whose);

/* The session for a read, opened if there is none. */
MUST_USE enum fault store_use(struct store *store, int ns, struct pg **pg_r);
/* The connection of the session; NULL: closed. */
struct pg *store_pg(const struct store *store, int ns);
/* Makes the session the one used most recently. */
void store_renew(struct store *store, int ns);
void store_close(struct store *store, int ns);
/* Of the session's server; whether that is no primary any more, so that what it acknowledges may be lost. */
uint32_t store_timeline(const struct store *store, int ns);
bool store_is_former(const struct store *store, int ns);

/* Between store_snapshot_begin and _end: statements are not repeated, and the session is not closed for
 * another. */
bool store_in_snapshot(const struct store *store, int ns);
void store_set_snapshot(struct store *store, int ns, bool in_snapshot);
/* From store_reservations_begin to the end of store_reservations_end: not closed for another, nor reopened.
 */
bool store_is_held(const struct store *store, int ns);
void store_set_held(struct store *store, int ns, bool is_held);

#endif
