/* files: the operation `resource`: administrators put, remove and list the files of a namespace
 * (model/resource_file.h), in the namespace z.  param, one member:
 * {"put":{"ns","if":version,"files":[{"path","type","policy","s"|"b64"|"file"}],"remove":[path…]}} →
 * {"v":version}; {"list":code} → {"ns","v","bytes","files":[{"path","v","type","size","sha256","policy"}]}.
 * One put is one commit. */
#include "operation/builtin.h"

#include "edge/crypto/crypto.h"
#include "model/namespace.h"
#include "model/resource_file.h"
#include "model/document/stamp.h"
#include "operation/documents/build.h"
#include "operation/documents/change.h"
#include "operation/administration/of_z.h"

enum { MEGA = 1048576, ITEM_COST = 200 /* of a piece in its document, at most */ };

static struct document_name name_of_list(struct bytes code)
{
    return (struct document_name){.class = BYTES(RESOURCE_FILE_LIST), .id = code};
}

/* --- reading a request --- */

/* A file of the request, or the path of one to remove. */
struct file_change {
    const struct json *at;
    struct bytes path, bytes;
    struct resource_file file;
    bool is_removal;
    struct draft *draft;
};

static enum fault read_path(const struct reader *reader, const struct json *value, const char *member,
                            const struct json *object, struct bytes code, struct bytes *path_r)
{
    bool is_text = value && value->kind == JSON_STRING;
    const char *expected = resource_file_refuse_path(is_text ? value->value : NO_BYTES);
    if (expected)
        return object ? reader_wrong(reader, object, member, expected)
                      : reader_wrong_value(reader, value, member, expected);
    *path_r = value->value;
    int64_t size = (int64_t)(code.size + 1 + path_r->size), most = reader->settings->limit_name_bytes;
    return size > most ? reader_over(reader, value, "limit_name_bytes", most, size) : FAULT_NONE;
}

/* The bytes of a part of the form. */
static enum fault find_part(const struct reader *reader, const struct json *element, struct bytes name,
                            struct bytes *bytes_r)
{
    for (size_t i = 0; i < reader->call->file_count; i++)
        if (bytes_equal(reader->call->files[i].name, name)) {
            *bytes_r = reader->call->files[i].content;
            return FAULT_NONE;
        }
    return reader_wrong(reader, element, "file", "The name of a file of the form is expected.");
}

static enum fault read_bytes(const struct reader *reader, const struct json *element, struct bytes *bytes_r)
{
    struct bytes text, encoded, part;
    enum fault fault =
        FAULT_FIRST(reader_text(reader, element, "s", &text), reader_text(reader, element, "b64", &encoded),
                    reader_text(reader, element, "file", &part));
    if (fault)
        return fault;
    if ((text.data != NULL) + (encoded.data != NULL) + (part.data != NULL) != 1)
        return reader_wrong_value(reader, element, "files", "Exactly one of s, b64 and file is expected.");
    if (part.data)
        return find_part(reader, element, part, bytes_r);
    *bytes_r = encoded.data ? resource_file_decode(reader->call->arena, encoded) : text;
    return bytes_r->data ? FAULT_NONE : reader_wrong(reader, element, "b64", "Base64 is expected.");
}

static enum fault read_type(const struct reader *reader, const struct json *element,
                            struct file_change *change)
{
    struct bytes type, policy;
    enum fault fault = FAULT_FIRST(reader_text(reader, element, "type", &type),
                                   reader_text(reader, element, "policy", &policy));
    if (fault)
        return fault;
    const char *standard = resource_file_type(change->path);
    if (!type.data && !standard)
        return reader_wrong(reader, element, "type",
                            "A media type must be declared for this extension, and for HTML, SVG and XML.");
    change->file.type = type.data ? type : bytes_of(standard);
    change->file.policy = policy;
    const char *expected = resource_file_refuse_type(change->file.type);
    if (expected)
        return reader_wrong(reader, element, "type", expected);
    expected = policy.data ? resource_file_refuse_policy(policy) : NULL;
    return expected ? reader_wrong(reader, element, "policy", expected) : FAULT_NONE;
}

static enum fault check_size(const struct reader *reader, const struct json *element, int64_t size)
{
    const struct settings *settings = reader->settings;
    if (size > settings->limit_resource_bytes)
        return reader_over(reader, element, "limit_resource_bytes", settings->limit_resource_bytes, size);
    int64_t piece = (int64_t)resource_file_part_bytes(settings->limit_content_bytes);
    int64_t cost = size / 3 * 4 + (size / piece + 2) * ITEM_COST + RESOURCE_FILE_POLICY_MOST;
    return cost > settings->limit_document_bytes
               ? reader_over(reader, element, "limit_document_bytes", settings->limit_document_bytes, cost)
               : FAULT_NONE;
}

static enum fault files_read_file(const struct reader *reader, const struct json *element, struct bytes code,
                                  struct file_change *change)
{
    struct arena *arena = reader->call->arena;
    if (element->kind != JSON_OBJECT || element->is_shallow)
        return reader_wrong_value(reader, element, "files",
                                  "Objects with path, type, policy and one of s, b64, file are expected.");
    change->at = element;
    enum fault fault =
        FAULT_FIRST(reader_members(reader, element, "path type policy s b64 file"),
                    read_path(reader, json_member(element, "path"), "path", element, code, &change->path),
                    read_type(reader, element, change), read_bytes(reader, element, &change->bytes),
                    check_size(reader, element, (int64_t)change->bytes.size));
    if (fault)
        return fault;
    char *digest = arena_alloc(arena, CRYPTO_SHA256_HEX + 1);
    crypto_sha256_hex(change->bytes, digest);
    change->file.size = (int64_t)change->bytes.size;
    change->file.sha256 = bytes_of(digest);
    return FAULT_NONE;
}

static enum fault files_read_list(const struct reader *reader, const struct json *wish, const char *member,
                                  size_t *count_r, const struct json **first_r)
{
    const struct json *array;
    *count_r = 0;
    *first_r = NULL;
    if (!json_member(wish, member))
        return FAULT_NONE;
    enum fault fault =
        reader_array(reader, wish, member, "limit_documents", reader->settings->limit_documents, &array);
    if (!fault) {
        *count_r = array->count;
        *first_r = array->first;
    }
    return fault;
}

/* All changes of the request, each path once. */
static enum fault read_changes(const struct reader *reader, const struct json *wish, struct bytes code,
                               struct file_change **changes_r, size_t *count_r)
{
    const struct json *file, *path;
    size_t files, removals, place = 0;
    *count_r = 0;
    *changes_r = NULL;
    enum fault fault = FAULT_FIRST(files_read_list(reader, wish, "files", &files, &file),
                                   files_read_list(reader, wish, "remove", &removals, &path));
    if (fault)
        return fault;
    /* The list and the configuration are documents too. */
    int64_t most = reader->settings->limit_documents - 2, count = (int64_t)(files + removals);
    if (count > most)
        return reader_over(reader, wish, "limit_documents", reader->settings->limit_documents, count + 2);
    struct file_change *changes = ARENA_ARRAY(reader->call->arena, struct file_change, files + removals);
    for (; file && !fault; file = file->next)
        fault = files_read_file(reader, file, code, &changes[place++]);
    for (; path && !fault; path = path->next) {
        changes[place] = (struct file_change){.at = path, .is_removal = true};
        fault = read_path(reader, path, "remove", NULL, code, &changes[place++].path);
    }
    for (size_t i = 0; i < place && !fault; i++)
        for (size_t j = 0; j < i && !fault; j++)
            if (bytes_equal(changes[i].path, changes[j].path))
                fault = reader_wrong_value(reader, changes[i].at, "files", "Each path is expected once.");
    *changes_r = changes;
    *count_r = place;
    return fault;
}

/* --- changing --- */

static void store_file(struct attempt *attempt, const struct file_change *change)
{
    struct arena *arena = attempt->call->arena;
    size_t piece = resource_file_part_bytes(attempt->worker_context->settings->limit_content_bytes);
    struct draft *draft = change->draft;
    const struct document *base = draft_base(draft);
    size_t number = 0;
    draft_create(draft);
    for (uint32_t i = 0; i < base->item_count; i++)
        if (!item_is_tombstone(&base->items[i]))
            draft_remove_item(draft, base->items[i].iclass, base->items[i].key);
    draft_set_item(draft, BYTES("Meta"), BYTES(""), false, resource_file_write(arena, &change->file));
    for (size_t at = 0; at < change->bytes.size; at += piece, number++) {
        size_t size = change->bytes.size - at < piece ? change->bytes.size - at : piece;
        draft_set_item(draft, BYTES("Part"), resource_file_part_key(arena, number), true,
                       resource_file_encode(arena, (struct bytes){change->bytes.data + at, size}));
    }
}

static void apply(struct attempt *attempt, struct draft *list, const struct file_change *change)
{
    if (change->is_removal) {
        draft_delete(change->draft);
        draft_remove_item(list, BYTES("File"), change->path);
        return;
    }
    store_file(attempt, change);
    draft_set_item(list, BYTES("File"), change->path, false,
                   resource_file_write(attempt->call->arena, &change->file));
}

/* Number and bytes of all files of the list. */
static int64_t sum(struct arena *arena, const struct draft *list, int64_t *count_r)
{
    struct bytes iclass = BYTES(""), key = BYTES("");
    const struct item *item;
    struct resource_file file;
    int64_t bytes = 0;
    *count_r = 0;
    while ((item = draft_next_item(list, iclass, key))) {
        iclass = item->iclass;
        key = item->key;
        if (!bytes_equal(iclass, BYTES("File")))
            continue;
        ++*count_r;
        bytes += resource_file_read(arena, item->content, &file) ? file.size : 0;
    }
    return bytes;
}

/* What is above a limit already may shrink. */
static enum fault check_all(const struct reader *reader, const struct json *wish, const struct draft *list)
{
    struct arena *arena = reader->call->arena;
    int64_t count, count_before, most_count = reader->settings->limit_resources;
    int64_t bytes = sum(arena, list, &count), most = reader->settings->limit_resources_mb;
    int64_t before = sum(arena, draft_open(arena, (struct document *)draft_base(list)), &count_before);
    if (count > most_count && count > count_before)
        return reader_over(reader, wish, "limit_resources", most_count, count);
    if (bytes > most * MEGA && bytes > before)
        return reader_over(reader, wish, "limit_resources_mb", most, (bytes + MEGA - 1) / MEGA);
    return FAULT_NONE;
}

/* The drafts of the list, the configuration and the files; z may have no configuration. */
static enum fault fetch_files(struct attempt *attempt, const struct reader *reader, struct bytes code,
                              struct file_change *changes, size_t count, struct draft **list_r,
                              struct draft **conf_r)
{
    struct arena *arena = attempt->call->arena;
    struct document_name *names = ARENA_ARRAY(arena, struct document_name, count + 2);
    struct draft **drafts = ARENA_ARRAY(arena, struct draft *, count + 2);
    names[0] = name_of_list(code);
    names[1] = (struct document_name){.class = BYTES("Namespace"), .id = code};
    for (size_t i = 0; i < count; i++)
        names[i + 2] = (struct document_name){.class = BYTES(RESOURCE_FILE_CLASS),
                                              .id = resource_file_id(arena, code, changes[i].path)};
    enum fault fault = transaction_fetch_many(attempt->transaction, names, count + 2, drafts);
    if (fault)
        return fault;
    for (size_t i = 0; i < count; i++)
        changes[i].draft = drafts[i + 2];
    *list_r = drafts[0];
    *conf_r = drafts[1];
    if (draft_exists(*conf_r))
        return FAULT_NONE;
    if (!bytes_equal(code, BYTES("z")))
        return reply_fault(reader->call, reader->reply, FAULT_NNAMESPACE, NULL,
                           arena_copy(arena, code.data, code.size), NULL);
    draft_set_item(*conf_r, BYTES("Conf"), BYTES(""), false,
                   namespace_set_member(arena, NO_BYTES, "database", reader->settings->z_database));
    return FAULT_NONE;
}

static enum fault files_put(struct attempt *attempt, const struct reader *reader, const struct json *param)
{
    const struct json *wish = json_member(param, "put");
    struct bytes code;
    struct file_change *changes;
    struct draft *list, *conf;
    size_t count;
    int64_t expected;
    if (wish->kind != JSON_OBJECT || wish->is_shallow)
        return reader_wrong_value(reader, wish, "put", "An object is expected.");
    enum fault fault = FAULT_FIRST(reader_members(reader, wish, "ns if files remove"),
                                   of_z_read_code(reader, wish, "ns", &code),
                                   reader_integer(reader, wish, "if", 0, STAMP_MAX, -1, &expected),
                                   read_changes(reader, wish, code, &changes, &count),
                                   fetch_files(attempt, reader, code, changes, count, &list, &conf));
    if (!fault && expected >= 0 && expected != change_version(draft_base(list))) {
        fault = change_refuse_version(reader, draft_base(list));
        reader_place(reader, wish, "if");
    }
    if (fault)
        return fault;
    for (size_t i = 0; i < count; i++)
        apply(attempt, list, &changes[i]);
    fault = check_all(reader, wish, list);
    if (draft_is_changed(list))
        build_move(attempt, conf);
    change_leave_version(attempt, change_version(draft_base(list)));
    return fault;
}

/* --- listing --- */

static void write_file(struct builder *body, const struct item *item)
{
    json_add_text(body, "{\"path\":", item->key);
    builder_printf(body, ",\"v\":%lld", (long long)item->version);
    if (item->content.size > 2) { /* its members: type, size, sha256, policy */
        builder_add_text(body, ",");
        builder_add(body, item->content.data + 1, item->content.size - 1);
    } else {
        builder_add_text(body, "}");
    }
}

static enum fault files_list(struct attempt *attempt, const struct reader *reader, const struct json *param)
{
    struct builder *body = attempt->reply->body;
    struct bytes code;
    struct draft *draft;
    int64_t count;
    const char *comma = "";
    enum fault fault = FAULT_FIRST(of_z_read_code(reader, param, "list", &code),
                                   transaction_fetch(attempt->transaction, name_of_list(code), &draft));
    if (fault)
        return fault;
    const struct document *document = draft_base(draft);
    json_add_text(body, "{\"ns\":", code);
    builder_printf(body, ",\"v\":%lld", (long long)change_version(document));
    builder_printf(body, ",\"bytes\":%lld,\"files\":[", (long long)sum(attempt->call->arena, draft, &count));
    for (uint32_t i = 0; i < document->item_count; i++) {
        const struct item *item = &document->items[i];
        if (item_is_tombstone(item) || !bytes_equal(item->iclass, BYTES("File")))
            continue;
        builder_printf(body, "%s", comma);
        write_file(body, item);
        comma = ",";
    }
    builder_add_text(body, "]}");
    return FAULT_NONE;
}

/* --- the operation --- */

static bool files_is_look(const struct call *call)
{
    return !json_member(call->param, "put");
}

static enum fault files_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct json *param = attempt->call->param;
    enum fault fault =
        of_z_check(&reader, "list put", "Files of namespaces are in the namespace z: call it there.",
                   "One of list, put is expected.");
    return FAULT_FIRST(fault, json_member(param, "put") ? files_put(attempt, &reader, param)
                                                        : files_list(attempt, &reader, param));
}

static enum fault files_afterwork(struct attempt *attempt)
{
    return files_is_look(attempt->call) ? FAULT_NONE : change_complete_version(attempt);
}

const struct operation builtin_files = {.name = "resource",
                                        .right = RIGHT_ADMIN,
                                        .work = files_work,
                                        .afterwork = files_afterwork,
                                        .is_look = files_is_look};
