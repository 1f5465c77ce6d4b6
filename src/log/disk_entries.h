/* disk_entries: which text is the newest under a key, of the changes that stand in a log (disk_log.h).
 *
 * A change is a row of entries: the sizes of key and text, four bytes each in the order of the host, the key,
 * the text.  The table keeps where in the log each key has its last entry, and no text. */
#ifndef STAMPD_LOG_DISK_ENTRIES_H
#define STAMPD_LOG_DISK_ENTRIES_H

#include "base/builder.h"
#include "base/coding/siphash.h"

struct disk_entry {
    struct bytes key, text; /* NO_BYTES: nothing is under the key */
};

/* To a change. */
void disk_entries_write(struct builder *change, const struct disk_entry *entry);
/* Takes the first entry off the rest of a change; false: it has none, or is malformed. */
MUST_USE bool disk_entries_cut(struct bytes *rest, struct disk_entry *entry_r);

struct disk_entries;

/* `log`: all of the log in memory, below 4 GiB; it stays there.  What is in it may be overwritten while it is
 * read: then the answers are wrong, but nothing outside of it is read. */
struct disk_entries *disk_entries_create(struct bytes log);
void disk_entries_destroy(struct disk_entries *entries); /* NULL is allowed */
/* `key`: of the hashes. */
void disk_entries_clear(struct disk_entries *entries, const struct siphash_key *key);
/* A change of the log, by which its keys have their last entries.  False: it is malformed from some entry on.
 */
MUST_USE bool disk_entries_add(struct disk_entries *entries, struct bytes change);
/* False: the log has nothing about the key. */
MUST_USE bool disk_entries_find(const struct disk_entries *entries, struct bytes key,
                                struct disk_entry *entry_r);
/* Each key's last entry, in no order; `*place` is 0 at first.  False: that was all. */
MUST_USE bool disk_entries_next(const struct disk_entries *entries, size_t *place,
                                struct disk_entry *entry_r);
size_t disk_entries_count(const struct disk_entries *entries);

#endif
