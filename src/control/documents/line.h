/* line: converts a line of a load file, a document as JSON, to an element for the operation `put`. */
#ifndef STAMPD_CONTROL_DOCUMENTS_LINE_H
#define STAMPD_CONTROL_DOCUMENTS_LINE_H

#include "base/arena.h"
#include "base/builder.h"

struct line_document {
    struct bytes class, id; /* decoded, in the arena or slices of the line */
    uint64_t name;          /* hash of both: equal names have equal hashes */
};

/* Appends {"c":class,"id":id,"items":[…]} with the texts as written in the line.  Leaves out v, ct and dt,
 * which dumps have; any other member is a problem.  False: nothing is appended, and `problem_r` is the
 * reason, in the arena. */
MUST_USE bool line_read(struct arena *arena, struct bytes text, struct builder *builder,
                        struct line_document *document_r, const char **problem_r);
/* Does it hold only blanks? */
bool line_is_empty(struct bytes text);

#endif
