/* cors: which pages of other origins may read an answer (Fetch standard): those that the namespace's
 * configuration names in "origins", a list of origins or "*".  Never with credentials: keys are arguments,
 * not cookies. */
#ifndef STAMPD_SERVE_CORS_H
#define STAMPD_SERVE_CORS_H

#include "operation/operation.h"
#include "serve/response.h"

/* Looks the origin of the request up and notes in the form what the answer is to say.  Nothing without an
 * origin, without a namespace, or when the configuration cannot be read. */
void cors_decide(struct worker_context *worker_context, struct call *call, struct bytes origin,
                 struct response_form *form);

/* The origin as the list of origins has it, or "*"; NULL: its pages may not read. */
const char *cors_find(struct arena *arena, const struct json *origins, struct bytes origin);

#endif
