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

/* A GET as anybody may send it, without anything that decides for some. */
static bool is_plain_read(const struct call *call)
{
    const struct resource *resource = call->resource;
    const struct browser *browser = &call->browser;
    return call->route == CALL_DOCUMENT && call->method == CALL_GET && resource->act == RESOURCE_READ &&
           !resource->match.is_given && !browser->origin.size && !call->bearer.data && !call->token.data &&
           !call->cookies.size && !call->build.data && !call->idempotency_key.data;
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
    struct documents *documents = worker_context->documents;
    const struct bytes class = BYTES("Namespace");
    public_read->form = 0;
    if (!is_plain_read(call))
        return;
    struct public_proof *proofs = public_read->proofs;
    int ns = documents_ns(documents, call->database);
    int z = documents_ns(documents, bytes_of(worker_context->settings->z_database));
    if (note_stamp(&proofs[0], segment, z, class, call->ns) &&
        note_stamp(&proofs[1], segment, z, class, BYTES("z")) &&
        note_stamp(&proofs[2], segment, ns, call->resource->class, call->resource->id))
        public_read->form = form;
}

/* --- after --- */

/* Was it decided by nothing but these documents?  Arguments are known by now. */
static bool is_for_all(const struct request *request, const struct reply *reply)
{
    const struct call *call = &request->call;
    const struct response_form *form = &request->form;
    bool is_bare = !call->admin.data && !call->key.data && !call->account.data && !call->session.data &&
                   !call->syncs && !call->client_copies && !call->resource->age_s &&
                   !call->caller.account.data;
    bool is_allowed = call->level == LEVEL_READ || call->level == LEVEL_WRITE;
    return is_bare && is_allowed && !call_is_judged(call) && !call->quotas && !call->is_by_old &&
           !form->has_origins && !form->origin && !form->judged && !reply->fault &&
           reply->status == STATUS_OK && reply->is_lasting && !(reply->timing && reply->timing->is_shown) &&
           !reply->cookie && !reply->is_secret && !reply->is_replayed && reply->etag &&
           !(reply->etag_view && *reply->etag_view);
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
                          const struct request *request, const struct reply *reply)
{
    const struct call *call = &request->call;
    char text[PUBLIC_NAME_BYTES];
    struct bytes name = {text, 0};
    if (!is_for_all(request, reply))
        return;
    name.size = public_view_name(call->database, call->ns, call->resource->class, call->resource->id, text);
    if (!name.size)
        return;
    struct builder head = {0}, unchanged = {0}, etag = {0};
    compose(request, reply, STATUS_OK, &head);
    compose(request, reply, STATUS_NOT_MODIFIED, &unchanged);
    builder_printf(&etag, "\"%lld\"", (long long)reply->etag);
    const struct public_answer answer = {.etag = builder_bytes(&etag),
                                         .head = builder_bytes(&head),
                                         .unchanged = builder_bytes(&unchanged),
                                         .body = builder_bytes(reply->body)};
    public_answers_put(segment, public_read->form, name, public_read->proofs, PUBLIC_READS_PROOFS, &answer);
    builder_free(&head);
    builder_free(&unchanged);
    builder_free(&etag);
}
