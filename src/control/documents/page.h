/* page: parses answers of the operations `list` and `get` for dump and purge: classes, names, documents as
 * lines.
 *
 * Each function returns false when the text is not such an answer.  Results point into the arena or the text.
 */
#ifndef STAMPD_CONTROL_DOCUMENTS_PAGE_H
#define STAMPD_CONTROL_DOCUMENTS_PAGE_H

#include "base/arena.h"
#include "base/builder.h"

struct page_name {
    struct bytes class, id;
    int64_t version; /* of a listed document; 0: not known */
};

/* {"out":{"classes":[…],"cursor":…}}; `cursor_r` NO_BYTES: this is the last page. */
MUST_USE bool page_read_classes(struct arena *arena, struct bytes text, struct bytes **classes_r,
                                size_t *count_r, struct bytes *cursor_r);
/* {"out":{"docs":[{"c","id","v",…}…],"cursor":…}} */
MUST_USE bool page_read_names(struct arena *arena, struct bytes text, struct page_name **names_r,
                              size_t *count_r, struct bytes *cursor_r);
/* {"out":{"docs":[document…]}} with `count` documents: appends a line for each that exists, as written except
 * for line ends between its members, which become blanks.  `written_r`: number of lines. */
MUST_USE bool page_read_documents(struct arena *arena, struct bytes text, size_t count, struct builder *lines,
                                  size_t *written_r);

/* Parses "Class.id". */
MUST_USE bool page_name_parse(struct bytes text, struct page_name *name_r);

#endif
