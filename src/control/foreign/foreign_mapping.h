/* foreign_mapping: what the mappings of all kinds of files share. */
#ifndef STAMPD_CONTROL_FOREIGN_FOREIGN_MAPPING_H
#define STAMPD_CONTROL_FOREIGN_FOREIGN_MAPPING_H

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

#endif
