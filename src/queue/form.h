/* form: reads the arguments of a request to a manager. */
#ifndef STAMPD_QUEUE_FORM_H
#define STAMPD_QUEUE_FORM_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"
#include "edge/json/json.h"

struct form {
    struct bytes op, key;     /* NO_BYTES: absent */
    const struct json *param; /* NULL: absent */
    /* After FAULT_AARG: the error; NULL, NO_BYTES: no details. */
    const char *detail, *at; /* a sentence, and a JSON pointer into the arguments, in the arena */
    struct bytes name, nearest;
};

/* FAULT_AARG, with details in the form: `name` is not in `known`; `parent` is the pointer to the object that
 * has it. */
MUST_USE enum fault form_check_name(struct arena *arena, struct form *form, const char *known,
                                    const char *parent, struct bytes name);
/* Reads op from the query string or the body, key and param from the body: a form, or a JSON object.
 * FAULT_SKEY: a key in the query string, where logs would keep it.  Texts are slices, or in the arena. */
MUST_USE enum fault form_read(struct arena *arena, struct bytes query, struct bytes content_type,
                              struct bytes body, struct form *form_r);

#endif
