/* pairs: a file of lines `name = value`, in sections if the caller has any, read by inih.
 *
 * Empty lines and lines that begin with # or ; are skipped.  A value is the rest of its line without the
 * blanks around it; the indented lines that follow continue it.  Lines that inih would alter silently (one
 * that is cut at its maximum length, 198 bytes, or a comment in the middle of a value) are refused before it
 * reads them. */
#ifndef STAMPD_BASE_PAIRS_H
#define STAMPD_BASE_PAIRS_H

#include "base/base.h"

struct named_value {
    const char *section, *name, *value; /* section "": before the first one */
    bool is_continued;                  /* the value continues that of the former pair */
};

struct pairs {
    /* False: the pair is refused, and `problem` has the reason. */
    bool (*take)(void *context, const struct named_value *pair);
    void *context;
    char *problem;
    size_t problem_size;
    bool has_sections; /* else a line that begins one is refused */
    int number;        /* set: of the line with the problem; 0: the problem is not in a line */
};

/* False: `problem` has the reason, without the path. */
MUST_USE bool pairs_read(struct pairs *pairs, const char *path);

#endif
