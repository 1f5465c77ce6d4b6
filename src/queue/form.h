/* form: the arguments of a request to a manager. */
#ifndef STAMPD_QUEUE_FORM_H
#define STAMPD_QUEUE_FORM_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"
#include "edge/json.h"

struct form {
    struct bytes op, key;     /* NO_BYTES: absent */
    const struct json *param; /* NULL: absent */
    /* After FAULT_AARG: what is wrong; NULL, NO_BYTES: it is not said. */
    const char *detail, *at; /* a sentence, and a JSON pointer from all arguments, in the arena */
    struct bytes name, nearest;
};

/* FAULT_AARG, explained in the form, when `name` is none of `known`; `parent` is the pointer to what has it.
 */
MUST_USE enum fault form_check_name(struct arena *arena, struct form *form, const char *known,
                                    const char *parent, struct bytes name);
/* op from the query string or the body, key and param from the body: a form, or a JSON object.  FAULT_SKEY: a
 * key in the query string, where it would stand in logs.  Texts are slices, or of the arena. */
MUST_USE enum fault form_read(struct arena *arena, struct bytes query, struct bytes content_type,
                              struct bytes body, struct form *form_r);

#endif
