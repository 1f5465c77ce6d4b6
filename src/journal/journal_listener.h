/* journal_listener: the keys that a connection listens to.
 *
 * Each is reported once, after the first change, and then no more until it is listened to again: so a
 * listener has a bounded number of messages, however slowly it reads, and what it reads after a message is at
 * least as new as the change. */
#ifndef STAMPD_JOURNAL_JOURNAL_LISTENER_H
#define STAMPD_JOURNAL_JOURNAL_LISTENER_H

#include "base/builder.h"
#include "base/bytes.h"
#include "records/records_changes.h"

enum { JOURNAL_LISTENER_MOST = 256 }; /* keys of a connection */

struct journal_listened {
    char *text;
    uint16_t key_size, identifier;
    bool is_suspect, is_due; /* the mark has moved; the key has changed */
    uint64_t mark, position;
};

/* Zeroed: none. */
struct journal_listener {
    struct journal_listened *list;
    size_t count;
    uint64_t position; /* all changes before it are known; those of a key count behind its own position */
    bool is_encrypted; /* the namespace that they are of */
};

/* Is there room for this key? */
bool journal_listener_has_room(const struct journal_listener *listener, struct bytes key);
/* `found`: as records_run has returned it; `identifier`: of the messages.  In place of an earlier one. */
void journal_listener_add(struct journal_listener *listener, struct bytes key, uint16_t identifier,
                          bool is_encrypted, const struct records_found *found);
/* May one of the keys have changed, so that journal_listener_read is to be called?  Costs little. */
bool journal_listener_look(struct journal_listener *listener, struct records *records);
/* Notes which keys have changed.  Of a namespace that was replaced by one that is encrypted where it was not,
 * or the reverse, all have. */
void journal_listener_read(struct journal_listener *listener, struct records *records, struct bytes ns,
                           bool is_encrypted);
/* All are to be reported: nothing here learns of their changes any more. */
void journal_listener_give_up(struct journal_listener *listener);
/* Are some to be reported? */
bool journal_listener_has_news(const struct journal_listener *listener);
/* Has a mark moved whose change was not read, as the records were busy? */
bool journal_listener_is_behind(const struct journal_listener *listener);
/* Reports them, as long as `out` has less than `most` bytes.  True: all of them. */
bool journal_listener_report(struct journal_listener *listener, uint64_t timestamp, size_t most,
                             struct builder *out);
void journal_listener_free(struct journal_listener *listener);

#endif
