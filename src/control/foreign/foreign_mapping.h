/* foreign_mapping: what the mappings of all kinds of files share. */
#ifndef STAMPD_CONTROL_FOREIGN_FOREIGN_MAPPING_H
#define STAMPD_CONTROL_FOREIGN_FOREIGN_MAPPING_H

#include "base/builder.h"
#include "base/settings.h"
#include "control/archive/archive_line.h"
#include "edge/json/json.h"

/* Sets the text if the value is there; false: it is no string. */
MUST_USE bool foreign_mapping_text(const struct json *value, struct bytes *text_r);
/* Are all members among these?  NULL: yes; else why not, in the arena. */
const char *foreign_mapping_unknown(struct arena *arena, const struct json *object, const char *known);
/* "Class" of a singleton, or "Class/key", of an item that clients may write. */
MUST_USE bool foreign_mapping_item(struct bytes text, const struct settings *settings, struct bytes *class_r,
                                   struct bytes *key_r);

/* What a document amounts to, so far; zero: nothing. */
struct foreign_size {
    int64_t items, largest, cost;
};
void foreign_mapping_count(struct foreign_size *size, const struct archive_item *item);
/* NULL, or which limit of the server the document is over, in the arena. */
const char *foreign_mapping_over(struct arena *arena, const struct settings *settings,
                                 const struct foreign_size *size);
/* NULL, or why this is no id. */
const char *foreign_mapping_wrong_id(struct arena *arena, const struct settings *settings, struct bytes id);

/* --- foreign ids --- */

/* Which documents of a file stand in it again, further behind.  A file is read twice: the first
 * pass adds every id, the second one asks.
 *
 * Memory: 16 bytes for each id. */

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
