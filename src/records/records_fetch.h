/* records_fetch: contents that the disk alone has, for a process that must not wait for the disk.
 *
 * Its commands read nothing: one that needs such a content ends with RECORDS_BUSY and found_r->is_away.
 * Another process that has the same memory, folder and key reads it, and the command is run again with what
 * was read. If the record has changed meanwhile, the command ends in the same way, with something else to be
 * read: what it uses is never the content of another version. */
#ifndef STAMPD_RECORDS_RECORDS_FETCH_H
#define STAMPD_RECORDS_RECORDS_FETCH_H

#include "base/builder.h"
#include "records/records.h"

enum { RECORDS_FETCH_PROBLEM_MOST = 120 };

/* Plain data, for another process. */
struct records_wanted {
    uint64_t mark, changes; /* of the key, and of all, when it was seen */
    uint32_t space, size, digest, key_size;
    char key[RECORDS_KEY_MOST]; /* the record's first one */
};

struct records_fetched {
    struct records_wanted wanted;
    bool has_ended, is_read; /* with this content, or without */
    struct builder content;
    char problem[RECORDS_FETCH_PROBLEM_MOST]; /* without: why; "": it was logged */
};

/* From now on commands of this process read nothing from the disk. */
void records_fetch_elsewhere(struct records *records);
/* What the command needs that has ended with found_r->is_away, before the next one is run. */
void records_fetch_wanted(const struct records *records, struct records_wanted *wanted_r);
/* What was read for commands that are run from now on; count 0: nothing. */
void records_fetch_offer(struct records *records, const struct records_fetched *list, size_t count);
/* Reads it, and waits for the disk.  Valid until the next call; NO_BYTES: it is not to be had, and
 * `problem_r` says why; NULL: it was logged. */
struct bytes records_fetch(struct records *records, const struct records_wanted *wanted,
                           const char **problem_r);

#endif
