/* sync: the whole request is validated before the operation, and answered after it. */
#include "operation/sync/sync.h"

#include "model/document/delta.h"
#include "operation/answer.h"
#include "operation/judge/judge.h"
#include "operation/reply.h"

enum fault sync_read(struct worker_context *worker_context, struct call *call, struct reply *reply,
                     const struct client_copies **client_copies_r)
{
    const struct reader reader = {worker_context->settings, call, reply};
    *client_copies_r = call->client_copies;
    if (call->client_copies)
        return client_copies_check(&reader, call->client_copies);
    if (!call->syncs)
        return FAULT_NONE;
    struct client_copies *client_copies;
    enum fault fault = client_copies_read(&reader, call->syncs, &client_copies);
    *client_copies_r = fault ? NULL : client_copies;
    return fault;
}

/* --- grants --- */

void sync_grant(struct attempt *attempt, struct document_name name)
{
    struct grant *grant = ARENA_NEW(attempt->call->arena, struct grant);
    *grant = (struct grant){attempt->grants, name};
    attempt->grants = grant;
}

static bool is_granted(const struct attempt *attempt, struct document_name name)
{
    for (const struct grant *grant = attempt->grants; grant; grant = grant->next)
        if (bytes_equal(grant->name.class, name.class) && bytes_equal(grant->name.id, name.id))
            return true;
    return false;
}

/* --- the answer --- */

/* In place of a document that is closed, or is to be requested again. */
static void write_instead(struct document_name name, const char *why, struct builder *body)
{
    json_add_text(body, "{\"c\":", name.class);
    json_add_text(body, ",\"id\":", name.id);
    builder_printf(body, ",\"%s\":true}", why);
}

ALWAYS_INLINE bool goes_now(struct answer *answer, const struct delta *delta, const struct builder *body)
{
    return delta_is_empty(delta) ||
           (answer_has_room(answer, body->size, delta_size(delta)) && answer_carry(answer, delta->source));
}

ALWAYS_INLINE void write_delta(struct answer *answer, const struct delta *delta,
                               const struct document_name *name, struct builder *body)
{
    if (goes_now(answer, delta, body))
        delta_write_json(delta, body);
    else
        write_instead(*name, "later", body);
}

/* The documents of the request that may be read. */
struct allowed {
    const struct document_name *names;
    size_t count;
    bool *is_closed; /* by index in the request; NULL: none is */
};

static struct allowed find_allowed(const struct attempt *attempt, const struct client_copies *request)
{
    struct arena *arena = attempt->call->arena;
    struct allowed allowed = {.names = request->names, .count = request->count};
    if (attempt->call->level >= LEVEL_READ)
        return allowed;
    struct document_name *names = ARENA_ROOM(arena, struct document_name, request->count);
    allowed.is_closed = ARENA_ROOM(arena, bool, request->count);
    allowed.names = names;
    allowed.count = 0;
    for (size_t i = 0; i < request->count; i++) {
        allowed.is_closed[i] = !is_granted(attempt, request->names[i]);
        if (!allowed.is_closed[i])
            names[allowed.count++] = request->names[i];
    }
    return allowed;
}

static enum fault write_allowed(struct attempt *attempt, const struct client_copies *request)
{
    struct arena *arena = attempt->call->arena;
    struct builder *body = attempt->reply->body;
    struct allowed allowed = find_allowed(attempt, request);
    const struct document **documents = ARENA_ROOM(arena, const struct document *, allowed.count);
    struct answer answer = answer_begin(attempt->worker_context->settings, arena, allowed.count);
    enum fault fault = documents_newest_part(attempt->worker_context->documents, attempt->ns, arena,
                                             allowed.names, allowed.count, answer.most, documents);
    for (size_t i = 0; !fault && i < request->count; i++) {
        const struct document_name *name = &request->names[i];
        if (i)
            builder_add_text(body, ",");
        if (allowed.is_closed && allowed.is_closed[i]) {
            write_instead(*name, "closed", body);
            continue;
        }
        const struct document *document = *documents++;
        if (!document) {
            write_instead(*name, "later", body);
            continue;
        }
        struct delta delta = request->views
                                 ? delta_compute_view(document, request->held[i], request->views[i], NULL)
                                 : delta_compute(document, request->held[i]);
        write_delta(&answer, &delta, name, body);
    }
    return fault;
}

/* --- where rules decide --- */

/* Documents that the operation has granted are not judged. */
static enum fault load_judged(struct attempt *attempt, const struct client_copies *request, size_t most,
                              const struct document **documents, struct view *views)
{
    enum fault fault = judge_load(attempt, request->names, request->count, most, documents, views);
    for (size_t i = 0; !fault && attempt->grants && i < request->count; i++) {
        if (!is_granted(attempt, request->names[i]))
            continue;
        views[i] = (struct view){0};
        fault = documents_newest(attempt->worker_context->documents, attempt->ns, attempt->call->arena,
                                 &request->names[i], 1, &documents[i]);
    }
    return fault;
}

static enum fault write_judged(struct attempt *attempt, const struct client_copies *request)
{
    struct arena *arena = attempt->call->arena;
    struct builder *body = attempt->reply->body;
    const struct document **documents = ARENA_ROOM(arena, const struct document *, request->count);
    struct view *views = ARENA_ROOM(arena, struct view, request->count);
    struct answer answer = answer_begin(attempt->worker_context->settings, arena, request->count);
    enum fault fault = load_judged(attempt, request, answer.most, documents, views);
    for (size_t i = 0; !fault && i < request->count; i++) {
        if (i)
            builder_add_text(body, ",");
        if (!documents[i]) {
            write_instead(request->names[i], "later", body);
            continue;
        }
        struct delta delta =
            delta_compute_view(documents[i], request->held[i], client_copies_view(request, i), &views[i]);
        write_delta(&answer, &delta, &request->names[i], body);
    }
    return fault;
}

enum fault sync_write(struct attempt *attempt, const struct client_copies *request)
{
    struct builder *body = attempt->reply->body;
    builder_add_text(body, "[");
    enum fault fault =
        call_is_judged(attempt->call) ? write_judged(attempt, request) : write_allowed(attempt, request);
    builder_add_text(body, "]");
    return fault;
}
