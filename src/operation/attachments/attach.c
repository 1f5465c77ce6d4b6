/* attach: whoever knows a digest must not read the file by attaching it: the caller has uploaded it, or reads
 * a document that has it. */
#include "operation/attachments/attach.h"

#include "model/document/thumbnails.h"
#include "model/document/view.h"
#include "operation/attachments/put_files.h"
#include "operation/attachments/thumbnail_key.h"
#include "operation/judge/judge.h"
#include "store/blobs/store_blobs.h"

#define MIME_ANY         BYTES("application/octet-stream")
#define EXPECTED_SOURCE  "An object with c, id and k of an attachment is expected."
#define EXPECTED_CONTENT "An attachment is given by sha, from, file, or as it was read."

enum { NAME_MOST = 255 }; /* bytes of an id and a key */

bool attach_is(const struct json *item)
{
    const struct json *class = json_member(item, "c");
    return class && class->kind == JSON_STRING && item_is_reserved(class->value);
}

bool attach_names(const struct json *item)
{
    return json_member(item, "sha") || json_member(item, "from") || json_member(item, "file") ||
           json_member(item, "mime");
}

/* --- reading --- */

static enum fault read_digest(const struct reader *reader, const struct json *item, struct attach *attach)
{
    struct bytes sha;
    enum fault fault = reader_text(reader, item, "sha", &sha);
    if (fault || !sha.data)
        return fault;
    attach->has_digest = blob_store_read_digest(sha, &attach->digest);
    return attach->has_digest
               ? FAULT_NONE
               : reader_wrong(reader, item, "sha", "64 hexadecimal digits in lower case are expected.");
}

static enum fault read_mime(const struct reader *reader, const struct json *item, struct attach *attach)
{
    enum fault fault = reader_text(reader, item, "mime", &attach->mime);
    return fault || !attach->mime.data || attachment_is_mime(attach->mime)
               ? fault
               : reader_wrong(reader, item, "mime", "A media type is expected.");
}

/* The members of objects in an item are not read yet. */
static const struct json *attach_read_object(const struct reader *reader, const struct json *value)
{
    struct json *object;
    bool is_object =
        value->kind == JSON_OBJECT && json_is_tree(reader->call->arena, value->text, 1, 1, &object);
    return is_object ? object : NULL;
}

static bool attach_read_part(const struct json *object, const char *name, struct bytes *part_r)
{
    *part_r = json_text_of(object, name, NO_BYTES);
    return part_r->size > 0;
}

static enum fault read_source(const struct reader *reader, const struct json *item, struct attach *attach)
{
    const struct json *from = json_member(item, "from");
    if (!from)
        return FAULT_NONE;
    const struct json *object = attach_read_object(reader, from);
    attach->has_source =
        object && object->count == 3 && attach_read_part(object, "c", &attach->source.class) &&
        attach_read_part(object, "id", &attach->source.id) &&
        attach_read_part(object, "k", &attach->source_key) && item_is_class_name(attach->source.class) &&
        attach->source.id.size <= NAME_MOST && attach->source_key.size <= NAME_MOST &&
        !memchr(attach->source.id.data, '\0', attach->source.id.size);
    return attach->has_source ? FAULT_NONE : reader_wrong(reader, item, "from", EXPECTED_SOURCE);
}

static enum fault attach_read_file(const struct reader *reader, const struct json *item,
                                   struct attach *attach)
{
    const struct call *call = reader->call;
    struct bytes name;
    enum fault fault = reader_text(reader, item, "file", &name);
    if (fault || !name.data)
        return fault;
    size_t count = 0;
    for (size_t i = 0; i < call->file_count; i++) {
        if (!bytes_equal(call->files[i].name, name))
            continue;
        attach->file = i;
        count++;
    }
    attach->has_file = count == 1;
    if (count != 1 || attach->has_digest || attach->has_source)
        return reader_wrong(reader, item, "file",
                            count > 1 ? "Several files of the form have this name."
                            : count   ? "An attachment has one of sha, from and file."
                                      : "The request is a multipart form without a file of this name.");
    const int64_t size = (int64_t)call->files[attach->file].content.size;
    if (size > reader->settings->limit_blob_bytes)
        return reader_over(reader, json_member(item, "file"), "limit_blob_bytes",
                           reader->settings->limit_blob_bytes, size);
    if (!attach->mime.data && attachment_is_mime(call->files[attach->file].type))
        attach->mime = call->files[attach->file].type;
    return FAULT_NONE;
}

/* The content as it was read, whatever its blanks and the order of its members. */
static enum fault attach_read_content(const struct reader *reader, const struct json *item,
                                      struct attach *attach)
{
    const struct json *content = json_member(item, "j");
    if (!content)
        return FAULT_NONE;
    const struct json *object = attach_read_object(reader, content);
    struct bytes sha;
    attach->is_sent_back = attach->has_digest =
        object && object->count == 3 && attach_read_part(object, "mime", &attach->mime) &&
        json_member(object, "size") && attach_read_part(object, "sha", &sha) &&
        blob_store_read_digest(sha, &attach->digest);
    return attach->is_sent_back ? FAULT_NONE : reader_wrong(reader, item, "c", ITEM_RESERVED);
}

enum fault attach_read(const struct reader *reader, const struct json *item, struct bytes key,
                       struct attach *attach_r)
{
    struct attach attach = {.key = key};
    enum fault fault = FAULT_NONE;
    bool is_by_name = attach_names(item);
    if (json_member(item, "s"))
        return reader_wrong(reader, item, "c", ITEM_RESERVED);
    if (is_by_name == (json_member(item, "j") != NULL))
        return reader_wrong_value(reader, item, "items", EXPECTED_CONTENT);
    if (!key.size)
        return reader_wrong(reader, item, "k", "An attachment has a key.");
    fault = is_by_name ? read_digest(reader, item, &attach) : attach_read_content(reader, item, &attach);
    if (!fault && is_by_name)
        fault = read_mime(reader, item, &attach);
    if (!fault && is_by_name)
        fault = read_source(reader, item, &attach);
    if (!fault && is_by_name)
        fault = attach_read_file(reader, item, &attach);
    if (!fault && !attach.has_digest && !attach.has_source && !attach.has_file)
        fault = reader_wrong_value(reader, item, "items", EXPECTED_CONTENT);
    *attach_r = attach;
    return fault;
}

/* --- setting --- */

static enum fault attach_refuse(const struct reader *reader, const struct json *item,
                                const struct attach *attach)
{
    struct arena *arena = reader->call->arena;
    char *sha = ARENA_ROOM(arena, char, BLOB_HEX + 1);
    enum fault fault;
    blob_store_write_digest(&attach->digest, sha);
    if (attach->has_digest)
        fault = reply_fault(reader->call, reader->reply, FAULT_NATTACHMENT, NULL, sha, NULL);
    else
        fault = reply_fault(reader->call, reader->reply, FAULT_NATTACHMENT, NULL,
                            arena_copy(arena, attach->source.class.data, attach->source.class.size),
                            arena_copy(arena, attach->source.id.data, attach->source.id.size),
                            arena_copy(arena, attach->source_key.data, attach->source_key.size), NULL);
    reader_place(reader, item, attach->has_source ? "from" : attach->is_sent_back ? "j" : "sha");
    return fault;
}

/* An attachment of the document as the caller sees it, before the change; false: it sees none of this key. */
static enum fault find_shown(struct attempt *attempt, const struct document *document, struct bytes key,
                             struct attachment *found_r, bool *is_found_r)
{
    struct view view = {0};
    *is_found_r = false;
    enum fault fault = judge_show(attempt, &document, &view);
    if (fault || !view_shows(&view, ATTACHMENT_CLASS))
        return fault;
    const struct item *item = document_find_item(document, ATTACHMENT_CLASS, key);
    *is_found_r =
        item && !item_is_tombstone(item) && attachment_read(attempt->call->arena, item->content, found_r);
    return FAULT_NONE;
}

/* The document is verified by the commit, so that its attachment is there when this one is written. */
static enum fault find_source(struct attempt *attempt, const struct attach *attach,
                              struct attachment *found_r, bool *is_found_r)
{
    const struct document *document;
    enum fault fault = FAULT_FIRST(transaction_consult(attempt->transaction, attach->source, &document),
                                   find_shown(attempt, document, attach->source_key, found_r, is_found_r));
    *is_found_r =
        *is_found_r && (!attach->has_digest || blob_digest_equal(&found_r->digest, &attach->digest));
    if (*is_found_r)
        found_r->mime = thumbnails_plain_mime(found_r->mime); /* elsewhere it is a file as any other */
    return fault;
}

/* Where no rules decide, the caller may read every file of the namespace. */
static enum fault find_claimed(struct attempt *attempt, const struct attach *attach,
                               struct attachment *found_r, bool *is_found_r)
{
    const struct call *call = attempt->call;
    struct store *store = documents_store(attempt->worker_context->documents);
    *is_found_r = false;
    if (call->rules && !call->caller.account.size)
        return FAULT_NONE;
    found_r->digest = attach->digest;
    found_r->mime = MIME_ANY;
    enum fault fault =
        store_blobs_find(store, attempt->ns, call->arena, call->rules ? call->caller.account : NO_BYTES,
                         &attach->digest, 1, &found_r->size);
    *is_found_r = !fault && found_r->size >= 0;
    return fault;
}

static enum fault judge_key(struct attempt *attempt, const struct reader *reader, const struct draft *draft,
                            const struct json *item, const struct attach *attach)
{
    const char *refusal;
    enum fault fault = thumbnail_key_judge(attempt, draft_base(draft)->header.class, attach->key, &refusal);
    return fault || !refusal ? fault : reader_wrong(reader, item, "k", refusal);
}

enum fault attach_set(struct attempt *attempt, const struct reader *reader, struct draft *draft,
                      const struct json *item, const struct attach *attach)
{
    struct attachment found;
    bool is_found = false;
    enum fault fault = attach->is_sent_back ? FAULT_NONE : judge_key(attempt, reader, draft, item, attach);
    if (fault)
        return fault;
    if (attach->has_file) {
        found.mime = MIME_ANY;
        put_files_take(attempt, attach->file, &found);
        is_found = true;
    } else if (attach->has_source) {
        fault = find_source(attempt, attach, &found, &is_found);
    } else {
        fault = find_shown(attempt, draft_base(draft), attach->key, &found, &is_found);
        is_found = is_found && blob_digest_equal(&found.digest, &attach->digest);
        if (!fault && !is_found && attach->is_sent_back)
            return reader_wrong(reader, item, "c", ITEM_RESERVED);
        if (!fault && !is_found)
            fault = find_claimed(attempt, attach, &found, &is_found);
    }
    if (fault || !is_found)
        return fault ? fault : attach_refuse(reader, item, attach);
    if (attach->mime.data && !attach->is_sent_back)
        found.mime = thumbnails_plain_mime(attach->mime); /* the mark is the server's */
    draft_set_attachment(draft, attach->key, &found);
    return FAULT_NONE;
}
