/* record_changes: what has changed of the records of a namespace since a position, for requests and modules
 * (records/records_changes.h).
 *
 * Clients and modules have positions as signed texts (signed_text.h), which show nothing of what others do.
 * A text that is not of this memory, after a restart or of another host, is as one that was overtaken. */
#ifndef STAMPD_OPERATION_RECORD_CHANGES_H
#define STAMPD_OPERATION_RECORD_CHANGES_H

#include "operation/attempt.h"
#include "records/records_changes.h"

struct record_changes {
    struct attempt *attempt;
    struct records *records;
    bool is_encrypted; /* the namespace, by its configuration */
    uint64_t position;
    uint64_t seen;   /* records_changes, before the last reading */
    int64_t read_ms; /* when that was */
    bool is_lost;    /* anything may have changed: what was read since the position is not all */
};

/* `since`: a text of record_changes_position; NO_BYTES: now.  is_busy_r: the records were busy. */
MUST_USE enum fault record_changes_begin(struct attempt *attempt, bool is_encrypted, struct bytes since,
                                         struct record_changes *changes_r, bool *is_busy_r);
/* Gives each key that has changed to `take`, in order, and moves the position behind it; until it returns
 * false, which leaves the position before that key.  False: the records were busy, and
 * a later call reads them. */
bool record_changes_read(struct record_changes *changes, bool (*take)(void *context, struct bytes key),
                         void *context);
/* Could there be more to read?  Costs a load. */
bool record_changes_are_likely(const struct record_changes *changes);
/* The position, in the arena. */
MUST_USE enum fault record_changes_position(const struct record_changes *changes, struct bytes *text_r);

#endif
