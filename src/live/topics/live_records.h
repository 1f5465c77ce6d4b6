/* live_records: definitions of records (doc/reference/records.md): which of them have changed, from the ring
 * of changed keys in the memory of the records.
 *
 * A timer looks at the ring while any listener names records, and rests otherwise; the programs that change
 * records do nothing for listeners.  Whatever may have been missed, because the ring was overtaken or the
 * memory is another one now, is an event of all definitions of records: an event says that a key may have
 * changed, and nothing of what it has become.  So no position is kept beyond a connection: one that resumes
 * gets an event for each of them.
 *
 * A listener gets an event of a key only while its caller may read it, by the rules for records of the
 * namespace. While these, or its account, may have changed, nothing is matched and nothing is written. */
#ifndef STAMPD_LIVE_TOPICS_LIVE_RECORDS_H
#define STAMPD_LIVE_TOPICS_LIVE_RECORDS_H

#include "live/live_audience.h"

struct live_listener;
struct live_records;
struct records;

/* `records` is borrowed; NULL: this server has none.  `begins` is called when the first listener names
 * records: then live_records_look is to be called after LIVE_RECORDS_STEP_MS, until it is no longer needed.
 */
struct live_records *live_records_create(struct records *records, void (*begins)(void *context),
                                         void *context) __attribute__((returns_nonnull));
void live_records_destroy(struct live_records *all); /* NULL is allowed; when no listeners are left */

enum { LIVE_RECORDS_STEP_MS = 10 };
/* Marks what has changed, for live_listener_flush_all.  False: nothing was found. */
bool live_records_look(struct live_records *all);
bool live_records_are_followed(const struct live_records *all);

/* The definitions of a listener, of records; before it waits for anything, and at its end. */
void live_records_join(struct live_listener *listener, const struct definition *definitions, size_t count);
void live_records_leave(struct live_listener *listener);
/* The first definition that the rules refuse to its caller, whose account, if any, is loaded: of a key that
 * it may not read, or of a prefix of no key that it may read.  Valid as long as the listener is; NO_BYTES:
 * none. */
struct bytes live_records_refused(const struct live_listener *listener);
/* All its definitions of records may have changed. */
void live_records_match(struct live_listener *listener);

#endif
