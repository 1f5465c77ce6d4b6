/* foreign_reader: each line is checked here again: limits, and JSON as the server takes it. */
#include "control/foreign/foreign_reader.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/coding/base64.h"
#include "control/archive/archive_line.h"
#include "control/message.h"
#include "model/document/attachment.h"
#include "model/document/document.h"
#include "model/document/item.h"

/* Levels of a line above contents: the object, the list of items, an item. */
enum { OUTER_DEPTH = 3, NODES_MOST = 1 << 24 };

struct foreign_size {
    int64_t items, largest, cost;
};

/* --- the program --- */

/* Memory of what it prints ends with the arena of the line. */
static const char *ended_early(struct foreign_reader *reader)
{
    return arena_printf(reader->arena, "the program that reads it, which python3 runs, has ended early");
}

/* The next line, in the arena; NULL: there is none, or it is something else. */
static const struct json *read_line(struct foreign_reader *reader)
{
    const struct json_limits limits = {.depth = (int)reader->control->settings.limit_depth + OUTER_DEPTH,
                                       .tree_depth = OUTER_DEPTH,
                                       .nodes = NODES_MOST};
    struct bytes line;
    struct json *root;
    struct json_problem problem;
    arena_reset(reader->arena);
    return input_next(&reader->input, true, &line) == INPUT_LINE &&
                   json_read(reader->arena, line, &limits, &root, &problem) == FAULT_NONE
               ? root
               : NULL;
}

static bool send_members(struct foreign_reader *reader, struct bytes members)
{
    const struct settings *settings = &reader->control->settings;
    struct builder text = {0};
    builder_add_text(&text, "{");
    builder_add_bytes(&text, members);
    builder_printf(&text, "\"limit_depth\":%lld,\"limit_content_bytes\":%lld,\"limit_name_bytes\":%lld}\n",
                   (long long)settings->limit_depth, (long long)settings->limit_content_bytes,
                   (long long)settings->limit_name_bytes);
    const bool is_sent = bytes_write(reader->child.in, builder_bytes(&text));
    builder_free(&text);
    subprocess_close(&reader->child.in);
    return is_sent || errno == EPIPE; /* it has ended: no line follows */
}

bool foreign_reader_open(struct foreign_reader *reader, struct control *control, const char *program,
                         const char *path, struct bytes members)
{
    const char *folder =
        control_directory(control->arena, "STAMPD_IMPORT", "src/control/foreign", STAMPD_IMPORT_DIRECTORY);
    const char *const words[] = {"python3", "-I", arena_printf(control->arena, "%s/%s", folder, program),
                                 path, NULL};
    const struct subprocess_work work = {.words = words, .has_in = true, .has_out = true, .is_bound = true};
    *reader = (struct foreign_reader){.control = control, .path = path};
    signal(SIGPIPE, SIG_IGN);
    if (!subprocess_start(&work, &reader->child))
        return message_refuse("%s: %s", words[0], strerror(errno));
    reader->arena = arena_create("foreign");
    input_take(&reader->input, reader->child.out);
    reader->child.out = -1;
    const struct json *root = send_members(reader, members) ? read_line(reader) : NULL;
    const struct bytes refused = json_text_of(root, "refused", NO_BYTES);
    reader->size = json_i64_of(root, "size", -1);
    if (refused.data)
        message_print("%.*s", (int)refused.size, refused.data);
    else if (reader->size < 0)
        message_print("%s: %s", path, ended_early(reader));
    else
        return true;
    foreign_reader_close(reader);
    return false;
}

void foreign_reader_close(struct foreign_reader *reader)
{
    input_close(&reader->input);
    kill(reader->child.pid, SIGTERM); /* after its last line there is nothing that it could lose */
    (void)subprocess_end(&reader->child);
    arena_destroy(reader->arena);
}

void foreign_reader_print_notes(const struct foreign_reader *reader)
{
    const struct json *notes = json_member(reader->root, "notes");
    for (const struct json *note = notes ? notes->first : NULL; note; note = note->next)
        message_print("%s: %.*s", reader->path, (int)note->value.size, note->value.data);
}

/* --- documents --- */

static const char *over_limit(struct arena *arena, const struct settings *settings,
                              const struct foreign_size *size)
{
    if (size->largest > settings->limit_content_bytes)
        return arena_printf(arena, "an item of %lld bytes, more than limit_content_bytes",
                            (long long)size->largest);
    if (size->items > settings->limit_items)
        return arena_printf(arena, "%lld items, more than limit_items", (long long)size->items);
    if (size->cost > settings->limit_document_bytes)
        return arena_printf(arena, "a document of %lld bytes, more than limit_document_bytes",
                            (long long)size->cost);
    return NULL;
}

static void add_item(struct builder *lines, struct bytes class, struct bytes key, int64_t number,
                     struct bytes content, struct foreign_size *size)
{
    const struct archive_item item = {class, key, number, number, content, false};
    const struct item stored = {.iclass = class, .key = key, .content = content};
    archive_line_add_item(lines, &item, size->items == 0);
    size->items++;
    size->cost += document_item_cost(&stored);
    if ((int64_t)content.size > size->largest)
        size->largest = (int64_t)content.size;
}

/* Of [class, key, content], or of [class, key, null, content as a string]. */
static const char *add_content(struct foreign_reader *reader, const struct json *item, int64_t number,
                               struct builder *lines, struct foreign_size *size)
{
    const struct json *key = item->first->next, *content = key->next, *text = content->next;
    struct json *root;
    if (text &&
        !json_is_tree(reader->arena, text->value, (int)reader->control->settings.limit_depth, 0, &root))
        return "expected a JSON text";
    add_item(lines, item->first->value, key->value, number, text ? text->value : content->text, size);
    return NULL;
}

/* [key, media type, base64].  NULL, also when the store of files refuses it, which is reported. */
static const char *add_file(struct foreign_reader *reader, const struct json *file, int64_t number,
                            struct importer_files *files, struct builder *lines, struct foreign_size *size,
                            bool *is_refused_r)
{
    const struct json *mime = file->first->next, *data = mime->next;
    struct attachment attachment = {
        .mime = attachment_is_mime(mime->value) ? mime->value : BYTES("application/octet-stream")};
    const size_t count = base64_size(data->value);
    char *copy = arena_alloc(reader->arena, count + 1);
    if (!base64_read_standard(data->value, copy, count))
        return "an attachment that is not in base64";
    if ((int64_t)count > reader->control->settings.limit_blob_bytes)
        return "an attachment over limit_blob_bytes";
    attachment.size = (int64_t)count;
    crypto_sha256((struct bytes){copy, count}, attachment.digest.bytes);
    if (files && !importer_files_put(files, (struct bytes){copy, count}, &attachment.digest))
        *is_refused_r = true;
    add_item(lines, ATTACHMENT_CLASS, file->first->value, number,
             attachment_write(reader->arena, &attachment), size);
    return NULL;
}

static enum foreign_event take_document(struct foreign_reader *reader, struct importer_files *files,
                                        int64_t number, struct builder *lines, const char **problem_r)
{
    const struct json *root = reader->root, *items = json_member(root, "items"),
                      *attached = json_member(root, "files"), *deletes = json_member(root, "deletes");
    const struct archive_header header = {json_text_of(root, "class", BYTES("")), reader->id, number, number,
                                          number};
    const int64_t most = reader->control->settings.limit_name_bytes;
    const size_t before = lines->size;
    struct foreign_size size = {0};
    bool is_refused = false;
    if (!header.id.size || (int64_t)header.id.size > most)
        *problem_r =
            arena_printf(reader->arena, "expected as the id a text of 1 to %lld bytes", (long long)most);
    for (const struct json *class = deletes ? deletes->first : NULL; class; class = class->next) {
        const struct archive_header gone = {.class = class->value, .id = reader->id, .version = number};
        archive_line_begin(lines, &gone);
        archive_line_end(lines, &gone);
    }
    if (!header.class.size && !*problem_r)
        return FOREIGN_DOCUMENT;
    archive_line_begin(lines, &header);
    for (const struct json *item = items ? items->first : NULL; item && !*problem_r; item = item->next)
        *problem_r = add_content(reader, item, number, lines, &size);
    for (const struct json *file = attached ? attached->first : NULL; file && !*problem_r && !is_refused;
         file = file->next)
        *problem_r = add_file(reader, file, number, files, lines, &size, &is_refused);
    archive_line_end(lines, &header);
    if (!*problem_r)
        *problem_r = over_limit(reader->arena, &reader->control->settings, &size);
    if (!*problem_r && !is_refused)
        return FOREIGN_DOCUMENT;
    lines->size = before;
    return *problem_r ? FOREIGN_WRONG : FOREIGN_FAILED;
}

static enum foreign_event end(struct foreign_reader *reader, const char **problem_r)
{
    const struct bytes digest = json_text_of(reader->root, "digest", NO_BYTES),
                       failed = json_text_of(reader->root, "failed", NO_BYTES);
    if (digest.size == CRYPTO_SHA256_HEX) {
        memcpy(reader->digest, digest.data, digest.size);
        reader->offset = reader->size;
        return FOREIGN_END;
    }
    *problem_r = failed.data ? arena_copy(reader->arena, failed.data, failed.size) : ended_early(reader);
    return FOREIGN_FAILED;
}

enum foreign_event foreign_reader_next(struct foreign_reader *reader, struct importer_files *files,
                                       int64_t number, struct builder *lines, const char **problem_r)
{
    const struct json *root = reader->root = read_line(reader), *wrong = json_member(root, "wrong");
    *problem_r = NULL;
    reader->line = json_i64_of(root, "line", reader->last_line + 1);
    reader->last_line = json_i64_of(root, "last_line", reader->line);
    reader->offset = json_i64_of(root, "offset", reader->offset);
    reader->id = json_text_of(root, "id", NO_BYTES);
    if (json_member(root, "class"))
        return take_document(reader, files, number, lines, problem_r);
    if (json_is_true(root, "left_out"))
        return FOREIGN_LEFT_OUT;
    if (json_member(root, "position"))
        return FOREIGN_POSITION;
    if (!wrong)
        return end(reader, problem_r);
    if (wrong->kind == JSON_STRING)
        *problem_r = arena_copy(reader->arena, wrong->value.data, wrong->value.size);
    return FOREIGN_WRONG;
}
