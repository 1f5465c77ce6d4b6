/* answer: the size limit of an answer (setting limit_answer_bytes), and which documents it already carries.
 *
 * An element is added when it fits, or when it is the first: a document larger than the limit is still sent,
 * alone. */
#ifndef STAMPD_OPERATION_ANSWER_H
#define STAMPD_OPERATION_ANSWER_H

#include "operation/reader.h"

struct answer {
    struct arena *arena;
    size_t most;                     /* bytes */
    size_t elements;                 /* most of them */
    const struct document **carried; /* a table by address, created for the first one */
    size_t mask, count;
};

struct answer answer_begin(const struct settings *settings, struct arena *arena, size_t elements);
/* May the answer, which has `size` bytes, take that many more? */
bool answer_has_room(const struct answer *answer, size_t size, size_t more);
/* False: it carries the document already.  Call at most `elements` times. */
bool answer_carry(struct answer *answer, const struct document *document);

#endif
