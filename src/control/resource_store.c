/* resource_store: by the SQL functions for documents, which keep versions and tell the workers. */
#include "control/resource_store.h"

#include "control/message.h"

enum { MEGA = 1048576 };

static void resource_store_add_text(struct pg_params *params, struct bytes text)
{
    pg_params_add_text(params, text);
}

bool resource_store_list(struct control *control, struct pg *z, const char *code,
                         struct stored_resource **files_r, size_t *count_r)
{
    struct pg_params params;
    struct pg_result *result;
    pg_params_start(&params, control->arena);
    resource_store_add_text(&params, bytes_of(code));
    if (!control_query(control, z, "reading the list of files",
                       "select key, content from stampd.item where class = '" RESOURCE_FILE_LIST
                       "' and id = $1::text and iclass = 'File' and content is not null "
                       "order by key collate \"C\"",
                       &params, &result))
        return false;
    size_t count = (size_t)pg_rows(result);
    *files_r = ARENA_ARRAY(control->arena, struct stored_resource, count + 1);
    *count_r = count;
    for (size_t i = 0; i < count; i++) {
        struct stored_resource *one = &(*files_r)[i];
        one->path = pg_get_text(result, (int)i, 0);
        one->content = pg_get_text(result, (int)i, 1);
        if (!resource_file_read(control->arena, one->content, &one->file))
            return message_refuse("%s: the entry of %.*s in the list of files is malformed", code,
                                  (int)one->path.size, one->path.data);
    }
    return true;
}

bool resource_store_get(struct control *control, struct pg *z, const char *code, struct bytes path,
                        struct bytes *bytes_r)
{
    struct pg_params params;
    struct pg_result *result;
    struct builder bytes = {0};
    bool is_whole = true;
    pg_params_start(&params, control->arena);
    resource_store_add_text(&params, resource_file_id(control->arena, bytes_of(code), path));
    if (!control_query(control, z, "reading the file",
                       "select iclass = 'Part', content from stampd.item where class = '" RESOURCE_FILE_CLASS
                       "' and id = $1::text and content is not null order by iclass collate \"C\", key "
                       "collate \"C\"",
                       &params, &result))
        return false;
    if (!pg_rows(result))
        return message_refuse("%s: there is no file %.*s", code, (int)path.size, path.data);
    for (int i = 0; i < pg_rows(result) && is_whole; i++) {
        if (!pg_get_bool(result, i, 0))
            continue;
        struct bytes piece = resource_file_decode(control->arena, pg_get_text(result, i, 1));
        is_whole = piece.data != NULL;
        if (is_whole)
            builder_add_bytes(&bytes, piece);
    }
    *bytes_r =
        (struct bytes){arena_copy(control->arena, bytes.data ? bytes.data : "", bytes.size), bytes.size};
    builder_free(&bytes);
    if (!is_whole)
        message_print("%s: the file %.*s is malformed", code, (int)path.size, path.data);
    return is_whole;
}

/* --- changing --- */

static bool put_item(struct control *control, struct pg *z, const char *class, struct bytes id,
                     const char *iclass, struct bytes key, struct bytes content, bool is_raw)
{
    struct pg_params params;
    struct pg_result *result;
    pg_params_start(&params, control->arena);
    resource_store_add_text(&params, bytes_of(class));
    resource_store_add_text(&params, id);
    resource_store_add_text(&params, bytes_of(iclass));
    resource_store_add_text(&params, key);
    resource_store_add_text(&params, content);
    return control_query(
        control, z, arena_printf(control->arena, "the document %s/%.*s", class, (int)id.size, id.data),
        is_raw ? "select stampd.put_item($1::text, $2::text, $3::text, $4::text, $5::text, true)"
               : "select stampd.put_item($1::text, $2::text, $3::text, $4::text, $5::text)",
        &params, &result);
}

static bool delete_document(struct control *control, struct pg *z, const char *class, struct bytes id)
{
    struct pg_params params;
    struct pg_result *result;
    pg_params_start(&params, control->arena);
    resource_store_add_text(&params, bytes_of(class));
    resource_store_add_text(&params, id);
    return control_query(control, z,
                         arena_printf(control->arena, "the document %s/%.*s", class, (int)id.size, id.data),
                         "select stampd.delete_document($1::text, $2::text)", &params, &result);
}

static bool resource_store_store(struct control *control, struct pg *z, const char *code,
                                 const struct resource_change *change)
{
    struct arena *arena = control->arena;
    struct bytes id = resource_file_id(arena, bytes_of(code), change->path);
    struct bytes about = change->is_removal ? NO_BYTES : resource_file_write(arena, &change->file);
    size_t piece = resource_file_part_bytes(control->settings.limit_content_bytes);
    bool is_done =
        delete_document(control, z, RESOURCE_FILE_CLASS, id) &&
        put_item(control, z, RESOURCE_FILE_LIST, bytes_of(code), "File", change->path, about, false);
    if (!is_done || change->is_removal)
        return is_done;
    is_done = put_item(control, z, RESOURCE_FILE_CLASS, id, "Meta", BYTES(""), about, false);
    for (size_t at = 0, number = 0; is_done && at < change->bytes.size; at += piece, number++) {
        size_t size = change->bytes.size - at < piece ? change->bytes.size - at : piece;
        is_done = put_item(control, z, RESOURCE_FILE_CLASS, id, "Part", resource_file_part_key(arena, number),
                           resource_file_encode(arena, (struct bytes){change->bytes.data + at, size}), true);
    }
    return is_done;
}

/* The build number of the namespace is the version of this item (resources.md). */
static bool move_build(struct control *control, struct pg *z, const char *code)
{
    struct pg_params params;
    struct pg_result *result;
    pg_params_start(&params, control->arena);
    resource_store_add_text(&params, bytes_of(code));
    return control_query(
        control, z, "moving the build of the namespace",
        "select stampd.put_item('Namespace', $1::text, 'Build', '', json_build_object('n', 1 + "
        "coalesce((select "
        "(content::json->>'n')::bigint from stampd.item where class = 'Namespace' and id = $1::text and "
        "iclass = 'Build' and content is not null), 0))::text)",
        &params, &result);
}

static const struct stored_resource *resource_store_find(const struct stored_resource *files, size_t count,
                                                         struct bytes path)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_equal(files[i].path, path))
            return &files[i];
    return NULL;
}

static bool resource_store_is_change(struct control *control, const struct stored_resource *present,
                                     const struct resource_change *change)
{
    if (change->is_removal || !present)
        return change->is_removal == (present != NULL);
    return !bytes_equal(present->content, resource_file_write(control->arena, &change->file));
}

/* Of all files after the change; what is above a limit already may shrink. */
static bool resource_store_is_within(struct control *control, struct pg *z, const char *code,
                                     int64_t bytes_before, size_t count_before)
{
    const struct settings *settings = &control->settings;
    struct stored_resource *files;
    size_t count;
    int64_t bytes = 0, most = settings->limit_resources_mb * MEGA;
    if (!resource_store_list(control, z, code, &files, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        bytes += files[i].file.size;
    if ((int64_t)count > settings->limit_resources && count > count_before)
        message_print("%s: %zu files; limit_resources is %lld", code, count,
                      (long long)settings->limit_resources);
    else if (bytes > most && bytes > bytes_before)
        message_print("%s: %lld bytes; limit_resources_mb is %lld", code, (long long)bytes,
                      (long long)settings->limit_resources_mb);
    else
        return true;
    return false;
}

static bool change_all(struct control *control, struct pg *z, const char *code,
                       const struct resource_change *changes, size_t count, size_t *changed_r)
{
    struct stored_resource *files;
    size_t count_before;
    int64_t bytes_before = 0;
    if (!resource_store_list(control, z, code, &files, &count_before))
        return false;
    for (size_t i = 0; i < count_before; i++)
        bytes_before += files[i].file.size;
    *changed_r = 0;
    for (size_t i = 0; i < count; i++) {
        if (!resource_store_is_change(control, resource_store_find(files, count_before, changes[i].path),
                                      &changes[i]))
            continue;
        if (!resource_store_store(control, z, code, &changes[i]))
            return false;
        ++*changed_r;
    }
    return !*changed_r || (resource_store_is_within(control, z, code, bytes_before, count_before) &&
                           move_build(control, z, code));
}

bool resource_store_change(struct control *control, struct pg *z, const char *code,
                           const struct resource_change *changes, size_t count, size_t *changed_r)
{
    return control_execute(z, "beginning", "begin") &&
           change_all(control, z, code, changes, count, changed_r) &&
           control_execute(z, "committing", "commit"); /* else it ends with the connection */
}

bool resource_store_drop(struct control *control, struct pg *z, const char *code)
{
    struct pg_params params;
    struct pg_result *result;
    pg_params_start(&params, control->arena);
    resource_store_add_text(&params, bytes_of(code));
    return control_query(control, z, "removing its files",
                         "select stampd.delete_document(class, id) from stampd.doc where ctime <> 0 and "
                         "((class = '" RESOURCE_FILE_CLASS "' and starts_with(id, $1::text || '/')) or "
                         "(class = '" RESOURCE_FILE_LIST "' and id = $1::text))",
                         &params, &result);
}
