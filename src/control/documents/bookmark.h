/* bookmark: the progress of a load, kept in a file so that another run can resume there. */
#ifndef STAMPD_CONTROL_DOCUMENTS_BOOKMARK_H
#define STAMPD_CONTROL_DOCUMENTS_BOOKMARK_H

#include "base/arena.h"
#include "base/bytes.h"

struct bookmark {
    int64_t line;     /* all lines up to this one are done */
    int64_t offset;   /* of the byte after it */
    const char *ns;   /* code of the namespace */
    const char *file; /* the lines' file, absolute, or "-" */
};

/* The text of the file. */
struct bytes bookmark_compose(struct arena *arena, const struct bookmark *bookmark);
/* Parses it; false: it is not a bookmark. */
MUST_USE bool bookmark_parse(struct arena *arena, struct bytes text, struct bookmark *bookmark_r);

#endif
