/* couch_mapping: a row is read as a tree down to its attachments; contents are copied as they are written. */
#include "control/foreign/couch/couch_mapping.h"

#include <string.h>

#include "base/coding/base64.h"
#include "control/foreign/foreign_mapping.h"
#include "model/document/attachment.h"
#include "model/document/item.h"

/* Levels of a row above the contents: the row, the document. */
enum { OUTER_DEPTH = 2, ATTACHMENT_DEPTH = 4, NODES_MOST = 1000000, SHOWN = 60 };

struct couch_mapping {
    const struct settings *settings;
    struct bytes class; /* NO_BYTES: none */
    struct bytes type;  /* the member that decides the class; NO_BYTES: none */
    const struct json *classes;
    struct bytes item_class, item_key;
    bool leaves_attachments;
    int64_t left_out; /* attachments */
};

const char couch_mapping_stub[] = "attachments without their bytes: save it with attachments=true, or import "
                                  "it --without-attachments";

/* --- reading --- */

static const char *couch_mapping_read_classes(const struct couch_mapping *mapping)
{
    if (!mapping->classes != !mapping->type.data)
        return "expected both \"type\" and \"classes\", or none of them";
    if (mapping->classes && mapping->classes->kind != JSON_OBJECT)
        return "expected an object as \"classes\"";
    for (const struct json *class = mapping->classes ? mapping->classes->first : NULL; class;
         class = class->next)
        if (class->kind != JSON_STRING || !item_is_class_name(class->value))
            return "expected as each of the \"classes\" a capital, then up to 15 letters and digits";
    return NULL;
}

static const char *couch_mapping_read_text(struct couch_mapping *mapping, struct arena *arena,
                                           struct bytes text)
{
    static const struct json_limits limits = {.depth = 4, .tree_depth = 4, .nodes = 10000};
    struct json_problem problem;
    struct json *root;
    struct bytes item = BYTES("Main");
    if (json_read(arena, text, &limits, &root, &problem) != FAULT_NONE)
        return arena_printf(arena, "%s, at byte %zu", problem.what, problem.offset + 1);
    if (root->kind != JSON_OBJECT)
        return "expected an object";
    const char *unknown = foreign_mapping_unknown(arena, root, "class item type classes");
    if (unknown)
        return unknown;
    mapping->classes = json_member(root, "classes");
    if (!foreign_mapping_text(json_member(root, "class"), &mapping->class) ||
        !foreign_mapping_text(json_member(root, "type"), &mapping->type) ||
        !foreign_mapping_text(json_member(root, "item"), &item))
        return "expected texts as \"class\", \"item\" and \"type\"";
    if (!foreign_mapping_item(item, mapping->settings, &mapping->item_class, &mapping->item_key))
        return "expected as \"item\" a class of items, or class/key";
    return couch_mapping_read_classes(mapping);
}

struct couch_mapping *couch_mapping_read(struct arena *arena, const struct settings *settings,
                                         struct bytes text, const char *class, const char **problem_r)
{
    struct couch_mapping *mapping = ARENA_ARRAY(arena, struct couch_mapping, 1);
    *mapping =
        (struct couch_mapping){.settings = settings, .item_class = BYTES("Main"), .item_key = BYTES("")};
    *problem_r = text.data ? couch_mapping_read_text(mapping, arena, text) : NULL;
    if (class)
        mapping->class = bytes_of(class);
    if (!*problem_r && (mapping->class.data ? !item_is_class_name(mapping->class) : !mapping->classes))
        *problem_r = "expected as the class of documents a capital, then up to 15 letters and digits";
    return *problem_r ? NULL : mapping;
}

void couch_mapping_leave_attachments(struct couch_mapping *mapping)
{
    mapping->leaves_attachments = true;
}

int64_t couch_mapping_left_out(const struct couch_mapping *mapping)
{
    return mapping->left_out;
}

/* --- attachments --- */

struct couch_writer {
    const struct couch_mapping *mapping;
    struct arena *arena;
    struct importer_files *files;
    struct builder *lines;
    int64_t number;
    struct foreign_size size;
    bool is_refused; /* the store of files; it has been reported */
    bool is_change;  /* the document may have been of another class before */
};

static void couch_mapping_add_item(struct couch_writer *writer, struct bytes class, struct bytes key,
                                   struct bytes content)
{
    const struct archive_item item = {class, key, writer->number, writer->number, content, false};
    archive_line_add_item(writer->lines, &item, writer->size.items == 0);
    foreign_mapping_count(&writer->size, &item);
}

static bool couch_mapping_decode(struct arena *arena, struct bytes text, struct bytes *bytes_r)
{
    size_t size = base64_size(text);
    char *bytes = arena_alloc(arena, size + 1);
    *bytes_r = (struct bytes){bytes, size};
    return base64_read_standard(text, bytes, size);
}

/* CouchDB compresses files of some types, and digests what it has stored: "encoding" says so, if the caller
 * has asked for it; else the types are those of its default. */
static bool is_compressed(const struct json *file, struct bytes mime)
{
    static const struct bytes types[] = {BYTES("text/"), BYTES("application/javascript"),
                                         BYTES("application/json"), BYTES("application/xml")};
    if (json_member(file, "encoding"))
        return true;
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (mime.size >= types[i].size && memcmp(mime.data, types[i].data, types[i].size) == 0)
            return true;
    return false;
}

/* Are the bytes those that were stored, as far as the answer says? */
static bool has_digest(const struct json *file, struct bytes mime, struct bytes bytes)
{
    static const struct bytes prefix = BYTES("md5-");
    const struct json *digest = json_member(file, "digest");
    unsigned char wanted[CRYPTO_MD5], found[CRYPTO_MD5];
    if (!digest || digest->kind != JSON_STRING || digest->value.size < prefix.size ||
        memcmp(digest->value.data, prefix.data, prefix.size) != 0 || !crypto_md5(bytes, found))
        return true;
    struct bytes text = {digest->value.data + prefix.size, digest->value.size - prefix.size};
    return is_compressed(file, mime) ||
           (base64_read_standard(text, wanted, sizeof wanted) && memcmp(wanted, found, sizeof found) == 0);
}

static const char *add_attachment(struct couch_writer *writer, const struct json *file)
{
    const struct settings *settings = writer->mapping->settings;
    const struct json *data = json_member(file, "data"), *mime = json_member(file, "content_type");
    struct attachment attachment = {.mime = BYTES("application/octet-stream")};
    struct bytes bytes;
    if (!data || data->kind != JSON_STRING)
        return couch_mapping_stub;
    if (foreign_mapping_wrong_id(writer->arena, settings, file->name))
        return "an attachment with a name over limit_name_bytes";
    if (!couch_mapping_decode(writer->arena, data->value, &bytes))
        return "an attachment that is not in base64";
    if ((int64_t)bytes.size > settings->limit_blob_bytes)
        return "an attachment over limit_blob_bytes";
    if (mime && mime->kind == JSON_STRING && attachment_is_mime(mime->value))
        attachment.mime = mime->value;
    if (!has_digest(file, attachment.mime, bytes))
        return "an attachment whose bytes are not those of its digest";
    attachment.size = (int64_t)bytes.size;
    crypto_sha256(bytes, attachment.digest.bytes);
    if (writer->files && !importer_files_put(writer->files, bytes, &attachment.digest)) {
        writer->is_refused = true;
        return NULL;
    }
    couch_mapping_add_item(writer, ATTACHMENT_CLASS, file->name,
                           attachment_write(writer->arena, &attachment));
    return NULL;
}

/* --- documents --- */

static const char *couch_mapping_find_class(const struct couch_mapping *mapping, struct arena *arena,
                                            const struct json *document, struct bytes *class_r)
{
    struct bytes type = NO_BYTES;
    *class_r = mapping->class;
    for (const struct json *member = document->first; member && mapping->type.data; member = member->next)
        if (bytes_equal(member->name, mapping->type) && member->kind == JSON_STRING)
            type = member->value;
    for (const struct json *class = mapping->classes ? mapping->classes->first : NULL; class && type.data;
         class = class->next)
        if (bytes_equal(class->name, type)) {
            *class_r = class->value;
            return NULL;
        }
    return class_r->data
               ? NULL
               : arena_printf(arena, "the mapping has no class for \"%.*s\"",
                              (int)(type.size < SHOWN ? type.size : SHOWN), type.data ? type.data : "");
}

/* Names that begin with _ are CouchDB's own. */
static void add_content(struct couch_writer *writer, const struct json *document)
{
    const struct couch_mapping *mapping = writer->mapping;
    struct builder json = {0};
    builder_add_text(&json, "{");
    for (const struct json *member = document->first; member; member = member->next) {
        if (member->name.size && member->name.data[0] == '_')
            continue;
        if (json.size > 1)
            builder_add_text(&json, ",");
        json_add_string(&json, member->name);
        builder_add_text(&json, ":");
        builder_add_bytes(&json, member->text);
    }
    builder_add_text(&json, "}");
    struct bytes content = builder_take(&json, writer->arena);
    couch_mapping_add_item(writer, mapping->item_class, mapping->item_key, content);
}

/* The document with this id in each class of the mapping but one: there it is not any more. */
static void add_deletions(struct couch_writer *writer, struct bytes id, struct bytes but)
{
    const struct couch_mapping *mapping = writer->mapping;
    struct archive_header header = {.class = mapping->class, .id = id, .version = writer->number};
    const struct json *class = mapping->classes ? mapping->classes->first : NULL;
    for (;;) {
        if (header.class.data && !bytes_equal(header.class, but)) {
            archive_line_begin(writer->lines, &header);
            archive_line_end(writer->lines, &header);
        }
        if (!class)
            return;
        header.class = class->value;
        class = class->next;
    }
}

static const char *write_document(struct couch_writer *writer, const struct json *document, struct bytes id)
{
    const struct settings *settings = writer->mapping->settings;
    const struct json *files = json_member(document, "_attachments");
    struct archive_header header = {.id = id, .version = writer->number};
    header.ctime = header.dtime = writer->number;
    const char *problem = foreign_mapping_wrong_id(writer->arena, settings, id);
    if (!problem)
        problem = couch_mapping_find_class(writer->mapping, writer->arena, document, &header.class);
    if (problem)
        return problem;
    if (writer->is_change)
        add_deletions(writer, id, header.class);
    archive_line_begin(writer->lines, &header);
    add_content(writer, document);
    bool has_files = files && files->kind == JSON_OBJECT && !writer->mapping->leaves_attachments;
    for (const struct json *file = has_files ? files->first : NULL; file && !problem; file = file->next)
        problem = add_attachment(writer, file);
    archive_line_end(writer->lines, &header);
    return problem ? problem : foreign_mapping_over(writer->arena, settings, &writer->size);
}

static const char *write_deletion(struct couch_writer *writer, struct bytes id)
{
    const char *problem = foreign_mapping_wrong_id(writer->arena, writer->mapping->settings, id);
    if (!problem)
        add_deletions(writer, id, NO_BYTES);
    return problem;
}

static bool is_left_out(struct bytes id, const struct json *row)
{
    const struct json *value = json_member(row, "value");
    const struct json *deleted = value ? json_member(value, "deleted") : NULL;
    return (deleted && deleted->kind == JSON_TRUE) || (id.size >= 8 && memcmp(id.data, "_design/", 8) == 0);
}

static int64_t count_attachments(const struct json *document)
{
    const struct json *files = json_member(document, "_attachments");
    return files && files->kind == JSON_OBJECT ? files->count : 0;
}

static bool is_true(const struct json *value)
{
    return value && value->kind == JSON_TRUE;
}

enum foreign_event couch_mapping_write(struct couch_mapping *mapping, struct arena *arena, struct bytes row,
                                       int64_t number, struct importer_files *files, struct builder *lines,
                                       const char **problem_r)
{
    const struct json_limits limits = {.depth = (int)mapping->settings->limit_depth - 1 + OUTER_DEPTH,
                                       .tree_depth = ATTACHMENT_DEPTH,
                                       .nodes = NODES_MOST};
    struct couch_writer writer = {mapping, arena, files, lines, number, {0}, false, false};
    struct json_problem problem;
    struct json *root;
    size_t before = lines->size;
    if (json_read(arena, row, &limits, &root, &problem) != FAULT_NONE) {
        *problem_r = arena_printf(arena, "%s, at byte %zu of the row", problem.what, problem.offset + 1);
        return FOREIGN_WRONG;
    }
    const struct json *id = json_member(root, "id"), *document = json_member(root, "doc");
    if (!id || id->kind != JSON_STRING) {
        *problem_r = "expected a row {\"id\",\"key\",\"value\",\"doc\"}";
        return FOREIGN_WRONG;
    }
    if (is_left_out(id->value, root))
        return FOREIGN_LEFT_OUT;
    writer.is_change = json_member(root, "changes") != NULL;
    if (writer.is_change && is_true(json_member(root, "deleted")))
        *problem_r = write_deletion(&writer, id->value);
    else if (!writer.is_change && is_true(json_member(document, "_deleted")))
        return FOREIGN_LEFT_OUT;
    else if (document && document->kind == JSON_OBJECT)
        *problem_r = write_document(&writer, document, id->value);
    else
        *problem_r = "a row without its document: ask CouchDB for include_docs=true";
    if (!*problem_r && !writer.is_refused) {
        mapping->left_out += mapping->leaves_attachments ? count_attachments(document) : 0;
        return FOREIGN_DOCUMENT;
    }
    lines->size = before;
    return *problem_r ? FOREIGN_WRONG : FOREIGN_FAILED;
}
