/* bookmark: how far a load has come, kept in a file so that another run goes on there. */
#ifndef STAMPD_CONTROL_BOOKMARK_H
#define STAMPD_CONTROL_BOOKMARK_H

#include "base/arena.h"
#include "base/bytes.h"

struct bookmark {
    int64_t line;     /* all lines up to this one are done with */
    int64_t offset;   /* of the byte behind it */
    const char *ns;   /* code of the namespace */
    const char *file; /* the lines' file, absolute, or "-" */
};

/* The text that the file holds. */
struct bytes bookmark_compose(struct arena *arena, const struct bookmark *bookmark);
/* Reads it back; false: it is none. */
MUST_USE bool bookmark_parse(struct arena *arena, struct bytes text, struct bookmark *bookmark_r);

#endif
