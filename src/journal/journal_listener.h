/* journal_listener: the keys that a connection listens to.
 *
 * Each is reported once, after the first change, and then no more until it is listened to again: so a
 * listener has a bounded number of messages, however slowly it reads, and what it reads after a message is at
 * least as new as the change. */
#ifndef STAMPD_JOURNAL_JOURNAL_LISTENER_H
#define STAMPD_JOURNAL_JOURNAL_LISTENER_H

#include "base/builder.h"
#include "base/bytes.h"
#include "records/records.h"

enum { JOURNAL_LISTENER_MOST = 256 }; /* keys of a connection */

struct journal_listened {
    char *text;
    uint16_t key_size, identifier;
    uint64_t mark;
};

/* Zeroed: none. */
struct journal_listener {
    struct journal_listened *list;
    size_t count;
};

/* Is there room for this key? */
bool journal_listener_has_room(const struct journal_listener *listener, struct bytes key);
/* `mark`: as records_run has returned it; `identifier`: of the messages.  In place of an earlier one. */
void journal_listener_add(struct journal_listener *listener, struct bytes key, uint16_t identifier,
                          uint64_t mark);
bool journal_listener_has_news(const struct journal_listener *listener, const struct records *records);
/* Reports what has changed, as long as `out` has less than `most` bytes.  True: all of it. */
bool journal_listener_report(struct journal_listener *listener, const struct records *records,
                             uint64_t timestamp, size_t most, struct builder *out);
void journal_listener_free(struct journal_listener *listener);

#endif
