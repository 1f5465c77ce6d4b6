/* page: what the operations `list` and `get` have answered, read for a copy: classes, names, documents as
 * lines.
 *
 * Each returns false when the text is no such answer.  What it gives lives in the arena or in the text. */
#ifndef STAMPD_CONTROL_PAGE_H
#define STAMPD_CONTROL_PAGE_H

#include "base/arena.h"
#include "base/bytes.h"

struct page_name {
    struct bytes class, id;
};

/* {"out":{"classes":[…],"cursor":…}}; `cursor_r` NO_BYTES: there are no more. */
MUST_USE bool page_read_classes(struct arena *arena, struct bytes text, struct bytes **classes_r,
                                size_t *count_r, struct bytes *cursor_r);
/* {"out":{"docs":[{"c","id",…}…],"cursor":…}} */
MUST_USE bool page_read_names(struct arena *arena, struct bytes text, struct page_name **names_r,
                              size_t *count_r, struct bytes *cursor_r);
/* {"out":{"docs":[document…]}} with `count` documents: appends a line for each that exists, as it is written
 * but for line ends between its members, which become blanks.  `written_r`: how many lines. */
MUST_USE bool page_read_documents(struct arena *arena, struct bytes text, size_t count, struct builder *lines,
                                  size_t *written_r);

/* Reads "Class.id". */
MUST_USE bool page_name_parse(struct bytes text, struct page_name *name_r);

#endif
