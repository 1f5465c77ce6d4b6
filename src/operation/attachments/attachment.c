/* attachment: the work of GET, PUT and DELETE. */
#include "operation/attachments/attachment.h"

#include <stdio.h>
#include <strings.h>

#include "base/log.h"
#include "blob/blob_sealed.h"
#include "blob/blob_store.h"
#include "document/transaction.h"
#include "model/document/attachment.h"
#include "model/document/stamp.h"
#include "model/document/thumbnails.h"
#include "operation/attachments/attachment_object.h"
#include "operation/attachments/attachment_upload.h"
#include "operation/attachments/thumbnail_key.h"
#include "operation/attempt.h"
#include "operation/documents/change.h"
#include "operation/documents/resource.h"
#include "operation/judge/judge.h"
#include "operation/reply.h"
#include "store/blobs/store_blobs.h"

/* --- the head of an attachment --- */

/* The head of an answer whose body is the file of an attachment: what a browser may do with
 * it, and under which name it is saved.
 *
 * Nothing that users store may run as a page of this origin, which has the cookies of accounts: a type is
 * shown only if it is in the list blob_inline_types, everything else is saved; no type is guessed, and
 * whatever a browser opens is sandboxed.  Type, name, caches. */

enum { NAME_MOST = 200 /* bytes; file systems allow 255 */ };

/* Does the list have the type, without its parameters, or its group, the part before the slash and a star? */
static bool attachment_head_is_inline(const char *types, struct bytes mime)
{
    struct bytes type = bytes_cut(&mime, ';'), list = bytes_of(types);
    while (type.size && type.data[type.size - 1] == ' ')
        type.size--;
    while (list.size) {
        struct bytes word = bytes_cut(&list, ' ');
        bool is_group = word.size > 2 && memcmp(word.data + word.size - 2, "/*", 2) == 0;
        size_t size = is_group ? word.size - 1 : word.size;
        if (word.size && (is_group ? type.size > size : type.size == size) &&
            strncasecmp(type.data, word.data, size) == 0)
            return true;
    }
    return false;
}

/* U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069: a name could show another extension than it has. */
static bool is_direction(const unsigned char *text, size_t size)
{
    if (size < 3 || text[0] != 0xE2)
        return false;
    return (text[1] == 0x80 &&
            (text[2] == 0x8E || text[2] == 0x8F || (text[2] >= 0xAA && text[2] <= 0xAE))) ||
           (text[1] == 0x81 && text[2] >= 0xA6 && text[2] <= 0xA9);
}

static bool is_c1(const unsigned char *text, size_t size)
{
    return size >= 2 && text[0] == 0xC2 && text[1] < 0xA0;
}

static bool is_unsafe(unsigned char byte)
{
    return byte < ' ' || byte == 0x7F || strchr("/\\:*?\"<>|", byte);
}

/* The name that may be shown and saved: valid UTF-8, not too long, not hidden. */
static struct bytes clean(struct arena *arena, struct bytes name)
{
    const unsigned char *text = (const unsigned char *)name.data;
    char *safe = arena_alloc(arena, name.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < name.size && size < NAME_MOST;) {
        size_t skip = is_direction(text + i, name.size - i) ? 3 : is_c1(text + i, name.size - i) ? 2 : 0;
        bool is_bad = skip || is_unsafe(text[i]) || (text[i] == '.' && size == 0);
        safe[size++] = is_bad ? '_' : (char)text[i];
        i += skip ? skip : 1;
    }
    if (size == NAME_MOST) { /* it may have been cut inside a character */
        while (size && ((unsigned char)safe[size - 1] & 0xC0) == 0x80)
            size--;
        if (size && (unsigned char)safe[size - 1] >= 0xC0)
            size--;
    }
    return size ? (struct bytes){safe, size} : BYTES("file");
}

static bool is_attribute(unsigned char byte) /* attr-char of RFC 8187 */
{
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
           (byte && strchr("!#$&+-.^_`|~", byte));
}

/* Content-Disposition (RFC 6266, 8187).  What could mislead, separators of paths, control characters and
 * marks of direction, is replaced in the name. */
static const char *attachment_head_disposition(struct arena *arena, bool is_inline, struct bytes name)
{
    struct builder builder = {0};
    struct bytes safe = clean(arena, name);
    bool is_plain = true;
    builder_printf(&builder, "%s; filename=\"", is_inline ? "inline" : "attachment");
    for (size_t i = 0; i < safe.size; i++) {
        unsigned char byte = (unsigned char)safe.data[i];
        if ((byte & 0xC0) == 0x80)
            continue; /* one mark for a whole character */
        is_plain = is_plain && byte < 0x80 && byte != '%';
        builder_add(&builder, byte < 0x80 && byte != '%' ? safe.data + i : "_", 1);
    }
    builder_add_text(&builder, "\"");
    if (!is_plain)
        builder_add_text(&builder, "; filename*=UTF-8''");
    for (size_t i = 0; !is_plain && i < safe.size; i++) {
        if (is_attribute((unsigned char)safe.data[i]))
            builder_add(&builder, safe.data + i, 1);
        else
            builder_printf(&builder, "%%%02X", (unsigned)(unsigned char)safe.data[i]);
    }
    return builder_take(&builder, arena).data;
}

/* May a cache that others use keep it?  Only what anybody may read without a name. */
static bool is_public(const struct call *call)
{
    return !call->rules && !call->admin.size && !call->bearer.data && !call->token.data &&
           !call->caller.account.data && !call->cookies.size && call->level >= LEVEL_READ;
}

/* Sets reply->attachment and the type; `is_held`: the client has the file already.  `object`, of
 * attachment_object.h: NULL: the directory has the file. */
static void attachment_head_set(struct attempt *attempt, const struct attachment *attachment,
                                struct bytes key, bool is_held, const struct attachment_object *object)
{
    char sha[BLOB_HEX + 1];
    struct call *call = attempt->call;
    const struct settings *settings = attempt->worker_context->settings;
    struct reply_attachment *head = ARENA_NEW(call->arena, struct reply_attachment);
    bool is_inline = attachment_head_is_inline(settings->blob_inline_types, attachment->mime);
    blob_store_write_digest(&attachment->digest, sha);
    *head = (struct reply_attachment){
        .sha = arena_copy(call->arena, sha, BLOB_HEX),
        .disposition = attachment_head_disposition(call->arena, is_inline, key),
        .is_public = is_public(call),
        .is_immutable = call->attachment->sha.data != NULL,
    };
    if (!is_held && object)
        attachment_object_set(call, object, attachment->size, head);
    else if (!is_held)
        head->location = blob_store_locate(call->arena, call->database, &attachment->digest);
    attempt->reply->attachment = head;
    attempt->reply->mime = arena_copy(call->arena, attachment->mime.data, attachment->mime.size);
}

/* --- the endpoint --- */

enum { STATUS_OK = 200, STATUS_CREATED = 201, STATUS_NOT_MODIFIED = 304 };

static enum fault refuse_absence(struct attempt *attempt)
{
    struct call *call = attempt->call;
    const struct resource *resource = call->resource;
    struct bytes name = call->attachment->key.data ? call->attachment->key : call->attachment->sha;
    return reply_fault(call, attempt->reply, FAULT_NATTACHMENT, NULL,
                       arena_copy(call->arena, resource->class.data, resource->class.size),
                       arena_copy(call->arena, resource->id.data, resource->id.size),
                       arena_copy(call->arena, name.data, name.size), NULL);
}

static bool has_digest(const struct attachment *attachment, struct bytes sha)
{
    struct blob_digest digest;
    return blob_store_read_digest(sha, &digest) &&
           memcmp(digest.bytes, attachment->digest.bytes, BLOB_DIGEST) == 0;
}

/* The attachment as the caller sees it; false: it sees none. */
static bool attachment_take(struct call *call, const struct item *item, const struct view *view,
                            struct attachment *attachment_r)
{
    return item && !item_is_tombstone(item) && view_shows(view, ATTACHMENT_CLASS) &&
           attachment_read(call->arena, item->content, attachment_r);
}

static bool attachment_find(struct call *call, const struct sight *sight, struct bytes key,
                            struct attachment *attachment_r)
{
    return document_exists(sight->document) &&
           attachment_take(call, document_find_item(sight->document, ATTACHMENT_CLASS, key), &sight->view,
                           attachment_r);
}

/* --- conditions: on the digest of the attachment, or the version of the document --- */

static bool attachment_is_named(const struct version_condition *condition, const struct sight *sight,
                                const struct attachment *attachment)
{
    for (size_t i = 0; attachment && i < condition->digest_count; i++)
        if (has_digest(attachment, condition->digests[i]))
            return true;
    if (condition->is_any)
        return attachment != NULL;
    return resource_is_at(condition, sight);
}

static enum fault check_conditions(const struct reader *reader, const struct sight *sight,
                                   const struct attachment *attachment)
{
    const struct resource *resource = reader->call->resource;
    bool is_refused =
        (resource->match.is_given && !attachment_is_named(&resource->match, sight, attachment)) ||
        (resource->none_match.is_given && attachment_is_named(&resource->none_match, sight, attachment));
    return is_refused ? change_refuse_view(reader, sight->document, &sight->view) : FAULT_NONE;
}

/* --- reading --- */

/* The item of a live attachment with this digest; NULL: the document has none. */
static const struct item *find_digest(struct call *call, const struct document *document, struct bytes sha,
                                      struct attachment *attachment_r)
{
    for (uint32_t i = 0; i < document->item_count; i++) {
        const struct item *item = &document->items[i];
        if (bytes_equal(item->iclass, ATTACHMENT_CLASS) && !item_is_tombstone(item) &&
            attachment_read(call->arena, item->content, attachment_r) && has_digest(attachment_r, sha))
            return item;
    }
    return NULL;
}

/* A file that was replaced or removed stays readable by its digest for a time. */
static enum fault find_kept(struct attempt *attempt, struct document_name name,
                            struct attachment *attachment_r, struct bytes *key_r)
{
    struct call *call = attempt->call;
    struct blob_reference reference;
    if (!blob_store_read_digest(call->attachment->sha, &attachment_r->digest))
        return refuse_absence(attempt);
    enum fault fault =
        store_blobs_find_reference(documents_store(attempt->worker_context->documents), attempt->ns,
                                   call->arena, name.class, name.id, &attachment_r->digest, &reference);
    if (fault)
        return fault;
    if (!reference.key.data)
        return refuse_absence(attempt);
    attachment_r->mime = reference.mime;
    attachment_r->size = reference.size;
    *key_r = reference.key;
    return FAULT_NONE;
}

static enum fault find_asked(struct attempt *attempt, struct document_name name, const struct sight *sight,
                             struct attachment *attachment_r, struct bytes *key_r)
{
    struct call *call = attempt->call;
    *key_r = call->attachment->key;
    if (key_r->data)
        return attachment_find(call, sight, *key_r, attachment_r) ? FAULT_NONE : refuse_absence(attempt);
    if (!view_shows(&sight->view, ATTACHMENT_CLASS))
        return refuse_absence(attempt);
    const struct item *item = find_digest(call, sight->document, call->attachment->sha, attachment_r);
    if (!item)
        return find_kept(attempt, name, attachment_r, key_r);
    *key_r = item->key;
    return FAULT_NONE;
}

/* The commit refuses what the store does not have: a file that is missing was removed by other means.  One
 * that moves between the directory and an object store is in the first, the second, or the first again. */
static enum fault find_file(struct attempt *attempt, const struct attachment *attachment,
                            struct attachment_object **object_r)
{
    int64_t size;
    struct call *call = attempt->call;
    struct sealed_file_keys keys;
    enum fault fault =
        store_blobs_keys(documents_store(attempt->worker_context->documents), attempt->ns, &keys);
    if (fault)
        return fault;
    const struct blob_digest name = blob_sealed_name(&keys, &attachment->digest);
    const int64_t stored = blob_sealed_size(&keys, attachment->size);
    const bool is_sealed = keys.count > 0; /* the keys themselves last until a session is found dead */
    *object_r = NULL;
    for (int tries = 0; tries < 2; tries++) {
        fault = blob_store_measure(attempt->worker_context->blobs, call->database, &name, &size);
        if (fault)
            return fault;
        if (size == stored)
            return is_sealed ? attachment_object_seal(attempt, &name, object_r) : FAULT_NONE;
        fault = attachment_object_find(attempt, is_sealed, attachment, object_r);
        if (fault || *object_r)
            return fault;
    }
    char sha[BLOB_HEX + 1];
    blob_store_write_digest(&attachment->digest, sha);
    log_error("attachments: a file is missing or cut off database=%.*s sha256=%s", (int)call->database.size,
              call->database.data, sha);
    return reply_fault(call, attempt->reply, FAULT_BCONTENT, "The file of the attachment is missing.", "sha",
                       NULL);
}

/* nginx refuses the entity tags of If-Match for files that it sends itself; those of object stores are not
 * otherwise. */
static enum fault refuse_match(const struct reader *reader, const struct sight *sight)
{
    const struct version_condition *match = &reader->call->resource->match;
    return match->is_given && !match->is_any ? change_refuse_view(reader, sight->document, &sight->view)
                                             : FAULT_NONE;
}

enum fault attachment_get_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct resource *resource = attempt->call->resource;
    struct document_name name;
    struct sight sight;
    struct attachment attachment;
    struct attachment_object *object = NULL;
    struct bytes key;
    enum fault fault = FAULT_FIRST(resource_name(&reader, &name), resource_read(attempt, name, &sight));
    if (!fault && !document_exists(sight.document))
        fault = resource_refuse_absence(attempt, name);
    if (!fault)
        fault = FAULT_FIRST(find_asked(attempt, name, &sight, &attachment, &key),
                            refuse_match(&reader, &sight), find_file(attempt, &attachment, &object));
    if (fault)
        return fault;
    bool is_held =
        resource->none_match.is_given && attachment_is_named(&resource->none_match, &sight, &attachment);
    attempt->reply->status = is_held ? STATUS_NOT_MODIFIED : STATUS_OK;
    attachment_head_set(attempt, &attachment, key, is_held, object);
    return FAULT_NONE;
}

/* --- writing --- */

static enum fault attachment_fetch(struct attempt *attempt, const struct reader *reader,
                                   struct draft **draft_r, struct sight *sight, bool *is_there_r)
{
    struct attachment attachment;
    bool may = true;
    enum fault fault = reader_check_length(reader, NULL, "key", attempt->call->attachment->key);
    attempt->reply->at = NULL; /* it is in the path */
    if (!fault)
        fault = resource_fetch(attempt, reader, true, draft_r, sight);
    if (!fault && attempt->call->rules)
        fault = judge_name(attempt, *draft_r, ATTACHMENT_CLASS, attempt->call->attachment->key, &may);
    if (!fault && !may)
        fault = judge_refuse(attempt, *draft_r);
    if (fault)
        return fault;
    *is_there_r = attachment_find(attempt->call, sight, attempt->call->attachment->key, &attachment);
    return check_conditions(reader, sight, *is_there_r ? &attachment : NULL);
}

static enum fault judge_key(struct attempt *attempt, const struct reader *reader)
{
    const struct call *call = attempt->call;
    const char *refusal;
    enum fault fault = thumbnail_key_judge(attempt, call->resource->class, call->attachment->key, &refusal);
    if (fault || !refusal)
        return fault;
    fault = reader_wrong(reader, NULL, "key", refusal);
    attempt->reply->at = NULL; /* it is in the path */
    return fault;
}

enum fault attachment_put_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct attachment_upload *upload = attempt->kept;
    struct call *call = attempt->call;
    struct draft *draft;
    struct sight sight;
    bool is_there;
    enum fault fault = FAULT_FIRST(attachment_fetch(attempt, &reader, &draft, &sight, &is_there),
                                   judge_key(attempt, &reader));
    if (fault)
        return fault;
    char sha[BLOB_HEX + 1];
    blob_store_write_digest(&upload->digest, sha);
    const struct attachment attachment = {
        .mime = call->attachment->mime.size
                    ? thumbnails_plain_mime(call->attachment->mime) /* the server's mark */
                    : BYTES("application/octet-stream"),
        .size = upload->size,
        .digest = upload->digest,
    };
    builder_printf(attempt->reply->body, "%d %lld %s %lld", is_there ? STATUS_OK : STATUS_CREATED,
                   (long long)view_version(&sight.view, sight.document), sha, (long long)upload->size);
    draft_set_item(draft, ATTACHMENT_CLASS, call->attachment->key, false,
                   attachment_write(call->arena, &attachment));
    return change_items(attempt, draft, NULL, true);
}

enum fault attachment_delete_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct draft *draft;
    struct sight sight;
    bool is_there;
    enum fault fault = attachment_fetch(attempt, &reader, &draft, &sight, &is_there);
    if (!fault && !is_there)
        fault = refuse_absence(attempt);
    if (fault)
        return fault;
    draft_remove_item(draft, ATTACHMENT_CLASS, attempt->call->attachment->key);
    change_leave_version(attempt, view_version(&sight.view, sight.document));
    return FAULT_NONE;
}

/* --- the answer --- */

/* What attachment_put_work left: status, version when nothing is written, digest, size. */
static bool read_left(const struct attempt *attempt, int64_t *status_r, int64_t *version_r,
                      struct bytes *sha_r, int64_t *size_r)
{
    struct bytes left = {attempt->reply->body->data + attempt->out,
                         attempt->reply->body->size - attempt->out};
    struct bytes status = bytes_cut(&left, ' '), version = bytes_cut(&left, ' ');
    *sha_r = bytes_cut(&left, ' ');
    return bytes_to_i64(status, status_r) && bytes_to_i64(version, version_r) && sha_r->size == BLOB_HEX &&
           bytes_to_i64(left, size_r) && (*status_r == STATUS_OK || *status_r == STATUS_CREATED) &&
           *version_r >= 0 && *version_r <= STAMP_MAX && *size_r >= 0;
}

enum fault attachment_put_afterwork(struct attempt *attempt)
{
    struct call *call = attempt->call;
    struct reply *reply = attempt->reply;
    int64_t status, version, size;
    struct bytes sha;
    if (!read_left(attempt, &status, &version, &sha, &size))
        return reply_fault(call, reply, FAULT_BCONTENT, NULL, "answer", NULL); /* it was stored */
    struct reply_attachment *head = ARENA_NEW(call->arena, struct reply_attachment);
    *head = (struct reply_attachment){.sha = arena_copy(call->arena, sha.data, sha.size)};
    reply->attachment = head;
    reply->status = (int)status;
    reply->body->size = attempt->out;
    builder_printf(reply->body, "{\"v\":%lld,\"sha\":\"%s\",\"size\":%lld}",
                   (long long)(attempt->version ? attempt->version : version), head->sha, (long long)size);
    return FAULT_NONE;
}

enum fault attachment_delete_afterwork(struct attempt *attempt)
{
    attempt->reply->status = STATUS_OK;
    return change_complete_version(attempt);
}
