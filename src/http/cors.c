/* cors: matches an origin against the list of its namespace. */
#include "http/cors.h"

#include "operation/access/access.h"

/* Returns the text of the list, never that of the request. */
const char *cors_find(struct arena *arena, const struct json *origins, struct bytes origin)
{
    const char *found = NULL;
    for (const struct json *one = origins->first; one; one = one->next) {
        if (one->kind != JSON_STRING)
            continue;
        if (bytes_equal(one->value, origin))
            return arena_copy(arena, one->value.data, one->value.size);
        if (bytes_equal(one->value, BYTES("*")))
            found = "*";
    }
    return found;
}

void cors_decide(struct worker_context *worker_context, struct call *call, struct bytes origin,
                 struct response_form *form)
{
    struct ns_conf conf;
    /* A cache keeps files: one that was fetched without an origin, as an image is, may be used for a page
     * that has one. */
    if (!call->database.size || (!origin.size && !form->is_attachment))
        return;
    documents_begin_request(worker_context->documents, call->deadline_ms);
    if (access_configuration(worker_context, call, &conf) != FAULT_NONE || !conf.origins)
        return;
    form->has_origins = true;
    form->origin = cors_find(call->arena, conf.origins, origin);
    form->may_send_cookies = conf.accounts.is_on && form->origin && strcmp(form->origin, "*") != 0;
}
