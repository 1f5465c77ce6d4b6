/* public_reads: sees the stamps first, and composes the answer for nginx last. */
#include "http/public_reads.h"

#include "base/coding/siphash.h"
#include "segment/slots.h"

enum { STATUS_OK = 200, STATUS_NOT_MODIFIED = 304 };

/* --- the settings --- */

static void public_reads_mix(uint64_t *form, const void *data, size_t size)
{
    const struct siphash_key key = {{*form, size}};
    *form = siphash_short(&key, (struct bytes){data, size});
}

static uint64_t digest_settings(const struct settings *settings)
{
    uint64_t form = 0;
#define TEXT(name, value, description) public_reads_mix(&form, settings->name, strlen(settings->name));
#define CHOICE(name, value, words, description)                                                              \
    public_reads_mix(&form, &settings->name, sizeof settings->name);
#define NUMBER(name, value, least, most, unit, description)                                                  \
    public_reads_mix(&form, &settings->name, sizeof settings->name);
#include "base/settings_table.h"
#undef TEXT
#undef CHOICE
#undef NUMBER
    return form ? form : 1;
}

/* With other hosts the stamps do not cover all changes; times differ from answer to answer. */
uint64_t public_reads_form(const struct settings *settings)
{
    if (!settings->public_answers_mb || settings->hosts == HOSTS_MANY || settings->server_timing)
        return 0;
    return digest_settings(settings);
}

/* --- before --- */

/* The operation `get`, which no module replaces. */
static bool is_get(const struct call *call)
{
    return call->route == CALL_OPERATION && bytes_equal(call->operation, BYTES("get")) && !call->path_count;
}

/* A GET as anybody may send it, without anything that decides for some. */
static bool is_plain_read(const struct call *call)
{
    const struct resource *resource = call->resource;
    const struct browser *browser = &call->browser;
    bool is_read = call->route == CALL_DOCUMENT ? resource->act == RESOURCE_READ && !resource->match.is_given
                                                : is_get(call);
    return is_read && call->method == CALL_GET && !browser->origin.size && !call->bearer.data &&
           !call->token.data && !call->cookies.size && !call->build.data && !call->idempotency_key.data;
}

/* False: a commit may be in flight there. */
static bool note_stamp(struct public_proof *proof, const struct segment *segment, int ns, struct bytes class,
                       struct bytes id)
{
    if (ns < 0)
        return false;
    uint32_t slot = slots_index(segment, slots_hash(segment, ns, class, id));
    struct observation observation = slots_see(segment, slot);
    *proof = (struct public_proof){.slot = slot, .tag = observation.stamp};
    return !observation.busy;
}

void public_reads_see(struct public_read *public_read, struct worker_context *worker_context,
                      const struct call *call, uint64_t form)
{
    struct segment *segment = worker_context->segment;
    const struct bytes class = BYTES("Namespace");
    public_read->form = 0;
    if (!is_plain_read(call))
        return;
    struct public_proof *proofs = public_read->proofs;
    int z = documents_ns(worker_context->documents, bytes_of(worker_context->settings->z_database));
    if (note_stamp(&proofs[0], segment, z, class, call->ns) &&
        note_stamp(&proofs[1], segment, z, class, BYTES("z")))
        public_read->form = form;
}

/* The document of a call; false: of `get`, it is not the one document, named and nothing else. */
static bool find_name(const struct call *call, struct bytes *class_r, struct bytes *id_r)
{
    if (call->resource) {
        *class_r = call->resource->class;
        *id_r = call->resource->id;
        return true;
    }
    const struct json *docs = call->param ? json_member(call->param, "docs") : NULL;
    const struct json *only = docs && docs->kind == JSON_ARRAY && docs->count == 1 ? docs->first : NULL;
    if (!only || only->kind != JSON_OBJECT || only->count != 2)
        return false;
    const struct json *class = json_member(only, "c"), *id = json_member(only, "id");
    if (!class || class->kind != JSON_STRING || !id || id->kind != JSON_STRING)
        return false;
    *class_r = class->value;
    *id_r = id->value;
    return true;
}

void public_reads_see_document(struct public_read *public_read, struct worker_context *worker_context,
                               const struct call *call)
{
    int ns = documents_ns(worker_context->documents, call->database);
    struct bytes class, id;
    if (!find_name(call, &class, &id) ||
        !note_stamp(&public_read->proofs[2], worker_context->segment, ns, class, id))
        public_read->form = 0;
}

/* --- after --- */

/* Was it decided by nothing but these documents?  Arguments are known by now. */
static bool is_for_all(const struct request *request, const struct reply *reply)
{
    const struct call *call = &request->call;
    const struct response_form *form = &request->form;
    bool is_bare = !call->admin.data && !call->key.data && !call->account.data && !call->session.data &&
                   !call->syncs && !call->client_copies && !call->caller.account.data && !call->body_size;
    bool is_of_resource = call->resource && !call->resource->age_s && reply->status == STATUS_OK &&
                          reply->etag && !(reply->etag_view && *reply->etag_view);
    bool is_allowed = call->level == LEVEL_READ || call->level == LEVEL_WRITE;
    return is_bare && is_allowed && !call_is_judged(call) && !call->quotas && !call->is_by_old &&
           !form->has_origins && !form->origin && !form->judged && !reply->fault &&
           (is_of_resource || is_get(call)) && reply->is_lasting &&
           !(reply->timing && reply->timing->is_shown) && !reply->cookie && !reply->is_secret &&
           !reply->is_replayed;
}

/* Is it the query as encodeURIComponent(JSON.stringify(…)) writes it, and does the id stand there as it is?
 * A document has one such query, so that nobody fills the segment with one answer under many names. */
static bool is_usual_query(struct bytes query, struct bytes class, struct bytes id)
{
    const struct bytes pieces[] = {BYTES("param=%7B%22docs%22%3A%5B%7B%22c%22%3A%22"), class,
                                   BYTES("%22%2C%22id%22%3A%22"), id, BYTES("%22%7D%5D%7D")};
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        if (query.size < pieces[i].size || memcmp(query.data, pieces[i].data, pieces[i].size) != 0)
            return false;
        query = (struct bytes){query.data + pieces[i].size, query.size - pieces[i].size};
    }
    return !query.size;
}

/* Returns the size of the name in `text_r`; 0: nginx does not answer this request. */
static size_t name_answer(const struct call *call, struct bytes query, char *text_r)
{
    struct bytes class, id;
    if (!find_name(call, &class, &id))
        return 0;
    if (call->resource)
        return public_view_name(call->database, call->ns, class, id, text_r);
    return is_usual_query(query, class, id)
               ? public_view_name(call->database, call->ns, BYTES(PUBLIC_GET), query, text_r)
               : 0;
}

/* A head with this status; nginx puts the id of its request in the place of the one there. */
static void compose(const struct request *request, const struct reply *reply, int status,
                    struct builder *head)
{
    struct response_form form = request->form;
    struct reply copy = *reply;
    form.request_id = "-";
    copy.status = status;
    response_compose(&form, &copy, head);
}

void public_reads_publish(const struct public_read *public_read, struct segment *segment,
                          const struct request *request, struct bytes query, const struct reply *reply)
{
    const struct call *call = &request->call;
    char text[PUBLIC_NAME_BYTES];
    struct bytes name = {text, 0};
    if (!is_for_all(request, reply))
        return;
    name.size = name_answer(call, query, text);
    if (!name.size)
        return;
    struct builder head = {0}, unchanged = {0}, etag = {0};
    compose(request, reply, STATUS_OK, &head);
    if (reply->etag) {
        compose(request, reply, STATUS_NOT_MODIFIED, &unchanged);
        builder_printf(&etag, "\"%lld\"", (long long)reply->etag);
    }
    const struct public_answer answer = {.etag = builder_bytes(&etag),
                                         .head = builder_bytes(&head),
                                         .unchanged = builder_bytes(&unchanged),
                                         .body = builder_bytes(reply->body)};
    public_answers_put(segment, public_read->form, name, public_read->proofs, PUBLIC_READS_PROOFS, &answer);
    builder_free(&head);
    builder_free(&unchanged);
    builder_free(&etag);
}
