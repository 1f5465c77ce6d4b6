/* records_changes: which keys have changed, in the order of the changes; for listeners.
 *
 * Each change of what is under a key appends the key to a ring in the memory of the records, as a part of the
 * change: it is there when the change has happened, and not otherwise, whoever dies.  What counts is another
 * content, a deletion, the passing of an end, and a key that is given or taken; locks and marks do not.  A
 * reader keeps its position, a number that only grows, and gets all keys behind it.  The ring has a bounded
 * size: a reader that was overtaken gets RECORDS_CHANGES_LOST, and must assume that everything has changed.
 *
 * Nobody is woken.  A reader looks at records_changes, which costs a load, and reads when it has moved. */
#ifndef STAMPD_RECORDS_RECORDS_CHANGES_H
#define STAMPD_RECORDS_RECORDS_CHANGES_H

#include "base/builder.h"
#include "records/records.h"

enum {
    RECORDS_CHANGES_STEP_MS = 10,   /* between two looks at records_changes */
    RECORDS_CHANGES_EXPIRY_MS = 100 /* between two calls of records_changes_expire while somebody waits */
};

enum records_changes_end {
    RECORDS_CHANGES_ALL,  /* the position is behind all changes */
    RECORDS_CHANGES_MORE, /* a part of them was read */
    RECORDS_CHANGES_LOST, /* overtaken: nothing was read, and the position is behind all changes */
    RECORDS_CHANGES_BUSY  /* as RECORDS_BUSY: nothing was read */
};

/* Moves before a change is in the ring: while it stands still, a reader that has read all misses nothing.
 * Whoever reads after it has moved waits for the change. */
uint64_t records_changes(const struct records *records);
/* Behind all changes.  False: as RECORDS_BUSY. */
MUST_USE bool records_changes_position(struct records *records, uint64_t *position_r);
/* Removes what has expired, at most a few hundred records: a change as others, which nobody else may make for
 * a long time.  False: as RECORDS_BUSY. */
bool records_changes_expire(struct records *records);
/* After records_changes_expire, appends the keys of the namespace that have changed since to `out`, for
 * records_changes_take, and moves the position.  A key may be there several times.  `is_encrypted`: as of a
 * command; nothing is returned of a former namespace. */
MUST_USE enum records_changes_end records_changes_read(struct records *records, struct bytes ns,
                                                       bool is_encrypted, uint64_t *position,
                                                       struct builder *out);
/* Takes the next key from what was read; `position_r`: behind its change.  False: there is none. */
bool records_changes_take(struct bytes *rest, struct bytes *key_r, uint64_t *position_r);
/* Of this memory: positions of another one, of another host or before a stop of all processes, mean nothing
 * here. */
uint64_t records_changes_identity(const struct records *records);

/* The mark of a key, which is all that a listener to one key needs to look at while nothing happens: has it
 * moved, since the command of which found_r has it, or the last call?  Keys may share one.  It moves as
 * records_changes does. */
bool records_changes_renew(const struct records *records, uint64_t *mark);

#endif
