/* archive_order: the parts in which documents are read, one after the other, so that they come in the order
 * of class and id also where ids are encrypted, whose order in the database is another one.
 *
 * Of a class whose ids are encrypted all ids are in memory meanwhile. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_ORDER_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_ORDER_H

#include "control/archive/archive_filter.h"

struct archive_part {
    struct archive_filter filter; /* with ids as they are stored */
    bool is_listed; /* all its documents are of one class, in the order of the ids of the filter */
};

/* The parts, in the arena of the command; `pg` is in the snapshot.  On failure reports why. */
MUST_USE bool archive_order_find(struct control *control, struct pg *pg, const struct data_keys *keys,
                                 const struct archive_filter *filter, struct archive_part **parts_r,
                                 size_t *count_r);

#endif
