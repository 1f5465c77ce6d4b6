/* answer: how large an answer may become (setting limit_answer_bytes), and which documents it carries
 * already.
 *
 * An element goes into the answer when it fits, or when it is the first: a document that is larger than the
 * limit is still answered, alone. */
#ifndef STAMPD_OPERATION_ANSWER_H
#define STAMPD_OPERATION_ANSWER_H

#include "operation/reader.h"

struct answer {
    struct arena *arena;
    size_t most;                     /* bytes */
    size_t elements;                 /* that may come */
    const struct document **carried; /* a table by address, made when the first is carried */
    size_t mask, count;
};

struct answer answer_begin(const struct settings *settings, struct arena *arena, size_t elements);
/* May the answer, which has `size` bytes, carry so many more? */
bool answer_has_room(const struct answer *answer, size_t size, size_t more);
/* False: it carries the document already.  At most `elements` times. */
bool answer_carry(struct answer *answer, const struct document *document);

#endif
