/* named_counts: a table of counters by name, in the segment; the most that metrics by name can grow to.
 *
 * Any process counts.  A table has room for NAMED_COUNTS_NAMES names, or as many as its owner says, in the
 * order in which they are counted first; all others share an entry.  A process that dies in between leaves
 * nothing behind: whoever finds an entry without its name completes it. */
#ifndef STAMPD_SEGMENT_COUNTS_NAMED_COUNTS_H
#define STAMPD_SEGMENT_COUNTS_NAMED_COUNTS_H

#include <stdatomic.h>

#include "base/bytes.h"

enum {
    NAMED_COUNTS_NAMES = 64,
    NAMED_COUNTS_WORDS = 5,
    NAMED_COUNTS_BYTES = NAMED_COUNTS_WORDS * 8, /* of a name; a longer one shares the last entry */
    NAMED_COUNTS_MOST = 9,
};

/* All zeros: empty. */
struct named_counts {
    struct named_counts_entry {
        _Alignas(64) _Atomic uint64_t hash; /* of the name; 0: free */
        _Atomic uint64_t is_named;
        _Atomic uint64_t name[NAMED_COUNTS_WORDS];
        _Atomic uint64_t counts[NAMED_COUNTS_MOST];
    } entries[NAMED_COUNTS_NAMES + 1]; /* the last one: all others */
};

/* The place of the name, from 0 to `names`, the size of the table without its last entry; taken for it if
 * need be. */
size_t named_counts_place_in(struct named_counts_entry *entries, size_t names, struct bytes name);
/* What is counted at a place, and its name; that of the last is empty.  False: nothing has been counted
 * there. */
bool named_counts_read_in(const struct named_counts_entry *entries, size_t names, size_t place,
                          char name_r[NAMED_COUNTS_BYTES + 1], uint64_t counts_r[NAMED_COUNTS_MOST]);

static inline size_t named_counts_place(struct named_counts *table, struct bytes name)
{
    return named_counts_place_in(table->entries, NAMED_COUNTS_NAMES, name);
}
static inline bool named_counts_read(const struct named_counts *table, size_t place,
                                     char name_r[NAMED_COUNTS_BYTES + 1],
                                     uint64_t counts_r[NAMED_COUNTS_MOST])
{
    return named_counts_read_in(table->entries, NAMED_COUNTS_NAMES, place, name_r, counts_r);
}
static inline void named_counts_add(struct named_counts *table, size_t place, int count, uint64_t more)
{
    atomic_fetch_add(&table->entries[place].counts[count], more);
}

#endif
