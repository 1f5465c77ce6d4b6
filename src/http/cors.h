/* cors: decides which pages of other origins may read an answer (Fetch standard).  The namespace's
 * configuration lists them in "origins": a list of origins, or "*".  Credentials, which are the cookies of
 * sessions, are allowed in namespaces with accounts, for origins that are listed by name. */
#ifndef STAMPD_HTTP_CORS_H
#define STAMPD_HTTP_CORS_H

#include "operation/call.h"
#include "operation/worker_context.h"
#include "http/response.h"

/* Looks up the origin of the request and records the headers to send in the form.  Does nothing without an
 * origin (except for files) or a namespace, or when the configuration cannot be read. */
void cors_decide(struct worker_context *worker_context, struct call *call, struct bytes origin,
                 struct response_form *form);

/* The origin as spelled in the list of origins, or "*"; NULL: its pages may not read the answer. */
const char *cors_find(struct arena *arena, const struct json *origins, struct bytes origin);

#endif
