/* line: one line of a load file, a document as JSON, made into what the operation `put` takes. */
#ifndef STAMPD_CONTROL_LINE_H
#define STAMPD_CONTROL_LINE_H

#include "base/arena.h"
#include "base/bytes.h"

struct line_document {
    struct bytes class, id; /* decoded, in the arena or slices of the line */
    uint64_t name;          /* hash of both: equal names have equal hashes */
};

/* Appends {"c":class,"id":id,"items":[…]} with the texts as they stand in the line; v, ct and dt, which dumps
 * have, are left out, and any other member is a problem.  False: nothing is appended, `problem_r` says why,
 * in the arena. */
MUST_USE bool line_read(struct arena *arena, struct bytes text, struct builder *builder,
                        struct line_document *document_r, const char **problem_r);
/* Nothing but blanks? */
bool line_is_empty(struct bytes text);

#endif
