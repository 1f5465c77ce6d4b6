/* journal_reader: child processes (journal_child.h) that read contents which the disk alone has in place of
 * the loop.
 *
 * What is to be read waits in a queue, in which each connection has one place: for one content at a time, so
 * that those who want many do not hold up the others. */
#ifndef STAMPD_JOURNAL_JOURNAL_READER_H
#define STAMPD_JOURNAL_JOURNAL_READER_H

#include "edge/events.h"
#include "journal/journal_contents.h"

enum { JOURNAL_READERS = 4 }; /* children: contents that are read at once */

/* A content that is not read after `most_ms` is refused. */
struct journal_reader *journal_reader_create(struct events *events, struct records *records, int64_t most_ms)
    __attribute__((returns_nonnull));
/* Nothing waits any more.  Kills the children; does not wait for the disk. */
void journal_reader_destroy(struct journal_reader *reader);
/* New children, without what the present ones have inherited, read from now on: a present one ends at once,
 * or after its answer if somebody waits for that. */
void journal_reader_retire(struct journal_reader *reader);
/* `done` is called from the loop, not from here, when all that is wanted has ended.  A child that has died is
 * replaced; what two have died of is not to be had. */
void journal_reader_read(struct journal_reader *reader, struct journal_contents *contents);
/* Waits no longer, if it did: `done` is not called. */
void journal_reader_leave(struct journal_contents *contents);

#endif
