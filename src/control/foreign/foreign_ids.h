/* foreign_ids: which documents of a file stand in it again, further behind.
 *
 * A file is read twice: the first pass adds every id, the second one asks.  Memory: 16 bytes for each id. */
#ifndef STAMPD_CONTROL_FOREIGN_FOREIGN_IDS_H
#define STAMPD_CONTROL_FOREIGN_FOREIGN_IDS_H

#include "base/builder.h"

struct foreign_ids {
    struct builder digests;  /* of all ids; empty after foreign_ids_settle */
    struct builder repeated; /* ids that stand in the file more than once, sorted */
};

void foreign_ids_add(struct foreign_ids *ids, struct bytes id);
/* Ends the first pass.  Returns how many of the ids added are of a document that comes again. */
int64_t foreign_ids_settle(struct foreign_ids *ids);
/* Is this the last time that the id comes?  Called for each id that was added, in any order. */
bool foreign_ids_is_last(struct foreign_ids *ids, struct bytes id);
void foreign_ids_free(struct foreign_ids *ids);

#endif
