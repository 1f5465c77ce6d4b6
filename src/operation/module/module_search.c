/* module_search: searches written in SQL, for a module (stampd.h). */
#include "operation/module/module_convert.h"

#include "base/clock.h"
#include "edge/json/json.h"
#include "operation/judge/judged_page.h"
#include "operation/module/module.h"
#include "operation/module/module_access.h"
#include "operation/module/module_try.h"
#include "stampd.h"
#include "store/collections/store_search.h"
#include "store/store_sealing.h"

/* --- what the caller sees --- */

/* Which rows of a search of a module the caller may be shown (stampd.h, is_judged).  The documents of the
 * rows are loaded and judged as those of a page of `find`. */

/* The documents that the rows name; rows of one document that are neighbours share a place. */
struct sighted {
    struct document_name *names;
    const struct document **documents;
    struct view *views;
    size_t count;
};

static bool module_search_sight_is_text(const struct json *value)
{
    return value && value->kind == JSON_STRING && value->value.size;
}

static bool is_last(const struct sighted *sighted, struct document_name name)
{
    const struct document_name *last = sighted->names + sighted->count - 1;
    return sighted->count && bytes_equal(last->class, name.class) && bytes_equal(last->id, name.id);
}

/* places[i]: of the document of row i. */
static bool module_search_sight_read_names(struct stampd_call *call, const char *search,
                                           const struct json *rows, struct sighted *sighted, size_t *places)
{
    for (const struct json *row = rows->first; row; row = row->next) {
        const struct json *class = json_member(row, "class"), *id = json_member(row, "id"),
                          *item = json_member(row, "item");
        if (!module_search_sight_is_text(class) || !module_search_sight_is_text(id) ||
            (item && item->kind != JSON_NULL && !module_search_sight_is_text(item))) {
            module_try_fail(call, FAULT_BMODULE, "A row of a judged search names no document:", search);
            return false;
        }
        const struct document_name name = {class->value, id->value};
        if (!is_last(sighted, name))
            sighted->names[sighted->count++] = name;
        *places++ = sighted->count - 1;
    }
    return true;
}

static enum fault module_search_sight_load(struct attempt *attempt, struct sighted *sighted, size_t *done_r)
{
    struct judged_page page = {0};
    size_t loaded = 1, done = 0;
    enum fault fault = FAULT_NONE;
    while (done < sighted->count && loaded && !fault) {
        fault = judged_page_load(&page, attempt, sighted->names + done, sighted->count - done,
                                 sighted->documents + done, sighted->views + done, &loaded);
        done += loaded;
    }
    *done_r = done;
    return fault;
}

/* Time in the database is not charged to the application. */
static bool load_watched(struct stampd_call *call, struct sighted *sighted)
{
    size_t done;
    module_try_unwatch(call);
    enum fault fault = module_search_sight_load(module_try_attempt(call), sighted, &done);
    module_try_watch(call);
    if (fault)
        module_try_fail(call, fault, NULL, NULL);
    else if (done < sighted->count)
        module_try_fail_limit(call, "documents of a search", (int64_t)done, (int64_t)sighted->count);
    return !module_try_fault(call);
}

static bool module_search_sight_is_shown(const struct json *row, const struct document *document,
                                         const struct view *view)
{
    const struct json *item = json_member(row, "item");
    return document_exists(document) &&
           (!item || item->kind == JSON_NULL || view_shows_plainly(view, item->value));
}

/* A value of its own: the text of a value holds the texts of all that is in it.  Also if all are shown: what
 * is between the rows would tell whether any was left out. */
static const struct json *read_shown(struct stampd_call *call, const struct json *rows, const bool *are_shown)
{
    struct arena *arena = module_try_arena(call);
    struct builder text = {0};
    const char *what;
    size_t at = 0;
    for (const struct json *row = rows->first; row; row = row->next) {
        if (!are_shown[at++])
            continue;
        builder_add(&text, text.size ? "," : "[", 1);
        builder_add_bytes(&text, row->text);
    }
    if (!text.size)
        builder_add_text(&text, "[");
    builder_add_text(&text, "]");
    const struct bytes kept = {arena_copy(arena, text.data, text.size), text.size};
    builder_free(&text);
    return module_try_read_json(call, kept, &what);
}

/* The rows without those that the caller may not be shown, in the arena of the try.  NULL: the try has
 * failed, since a row names no document (BMODULE), or its documents take too much memory (ALIMIT). */
static const struct json *module_search_sight(struct stampd_call *call, const char *search,
                                              const struct json *rows)
{
    struct arena *arena = module_try_arena(call);
    const size_t most = rows->count;
    const bool may = module_access_allows(call, LEVEL_READ);
    bool *are_shown = ARENA_ARRAY(arena, bool, most);
    size_t *places = ARENA_ARRAY(arena, size_t, most), at = 0;
    struct sighted sighted = {.names = ARENA_ARRAY(arena, struct document_name, most),
                              .documents = ARENA_ARRAY(arena, const struct document *, most),
                              .views = ARENA_ARRAY(arena, struct view, most)};
    if (!module_search_sight_read_names(call, search, rows, &sighted, places))
        return NULL;
    if (may && !call_is_judged(module_try_attempt(call)->call))
        return rows;
    if (may && !load_watched(call, &sighted))
        return NULL;
    for (const struct json *row = rows->first; may && row; row = row->next, at++)
        are_shown[at] =
            module_search_sight_is_shown(row, sighted.documents[places[at]], &sighted.views[places[at]]);
    return read_shown(call, rows, are_shown);
}

/* --- the functions --- */

enum { ROWS_MOST = 1000, BYTES_MOST = 16 << 20 };

static const struct stampd_search *find_search(struct stampd_call *call, const char *name,
                                               const char *const *arguments, size_t count)
{
    const struct stampd_search *search = module_find_search(name);
    if (module_try_is_afterwork(call))
        module_try_fail(call, FAULT_BMODULE, "Nothing can be searched in afterwork:", name);
    else if (!search)
        module_try_fail(call, FAULT_BMODULE, "There is no search of this name:", name);
    else if (count != search->arguments)
        module_try_fail(call, FAULT_BMODULE, "A search was run with a wrong number of arguments:", name);
    for (size_t i = 0; !module_try_fault(call) && i < count; i++)
        if (arguments[i] && !bytes_is_utf8(bytes_of(arguments[i])))
            module_try_fail(call, FAULT_BMODULE, "An argument of a search is no UTF-8:", name);
    return module_try_fault(call) ? NULL : search;
}

/* Time in the database is not charged to the application. */
static enum fault select_rows(struct stampd_call *call, const struct selection *selection,
                              struct bytes *rows_r)
{
    const struct attempt *attempt = module_try_attempt(call);
    module_try_unwatch(call);
    enum fault fault = store_search_select(documents_store(attempt->worker_context->documents), attempt->ns,
                                           module_try_arena(call), selection, rows_r);
    module_try_watch(call);
    return fault;
}

static const struct json *read_rows(struct stampd_call *call, const char *name, struct bytes rows)
{
    const char *what;
    if (!rows.data) {
        module_try_fail_limit(call, "bytes of a search", BYTES_MOST, BYTES_MOST + INT64_C(1));
        return NULL;
    }
    const struct json *root = module_try_read_json(call, rows, &what);
    if (!root)
        module_try_fail(call, FAULT_BMODULE, "A search gives what is nested too deep:", name);
    else if (root->count > ROWS_MOST)
        module_try_fail_limit(call, "rows of a search", ROWS_MOST, (int64_t)root->count);
    return module_try_fault(call) ? NULL : root;
}

static const struct json *module_search_text_of(const struct json *row, const char *name)
{
    const struct json *value = json_member(row, name);
    return value && value->kind == JSON_STRING && value->value.size ? value : NULL;
}

/* The id of a row of this class as clients have it.  False: the try has failed. */
static bool open_id(struct stampd_call *call, struct bytes class, struct bytes *id)
{
    const struct attempt *attempt = module_try_attempt(call);
    enum fault fault = store_sealing_open_id(documents_store(attempt->worker_context->documents), attempt->ns,
                                             module_try_arena(call), class, id);
    if (fault)
        module_try_fail(call, fault, NULL, NULL);
    return !fault;
}

/* Where ids are encrypted: rows that name a document, by `class` and `id`, name it by the id that clients
 * have. */
static const struct json *open_ids(struct stampd_call *call, const char *name, const struct json *rows)
{
    const struct attempt *attempt = module_try_attempt(call);
    const struct store *store = documents_store(attempt->worker_context->documents);
    struct builder text = {0};
    const char *at = rows->text.data, *end = at + rows->text.size;
    if (!data_keys_has_ids(store_sealing_keys(store, attempt->ns)))
        return rows;
    for (const struct json *row = rows->first; row && !module_try_fault(call); row = row->next) {
        const struct json *class = module_search_text_of(row, "class"),
                          *id = module_search_text_of(row, "id");
        struct bytes opened = id ? id->value : NO_BYTES;
        if (!class || !id || !open_id(call, class->value, &opened))
            continue;
        builder_add(&text, at, (size_t)(id->text.data - at));
        json_add_string(&text, opened);
        at = id->text.data + id->text.size;
    }
    builder_add(&text, at, (size_t)(end - at));
    const struct bytes kept = {arena_copy(module_try_arena(call), text.data, text.size), text.size};
    builder_free(&text);
    return module_try_fault(call) ? NULL : read_rows(call, name, kept);
}

const struct stampd_json *stampd_run_search(struct stampd_call *call, const char *name,
                                            const char *const *arguments, size_t count)
{
    if (module_try_fault(call))
        return NULL;
    const struct stampd_search *search = find_search(call, name, arguments, count);
    if (!search)
        return NULL;
    struct bytes *values = ARENA_ARRAY(module_try_arena(call), struct bytes, count), rows;
    for (size_t i = 0; i < count; i++)
        values[i] = arguments[i] ? bytes_of(arguments[i]) : NO_BYTES;
    enum fault fault = select_rows(
        call,
        &(struct selection){.sql = search->sql,
                            .values = values,
                            .count = count,
                            .bytes = BYTES_MOST,
                            .rows = ROWS_MOST + 1,
                            .timeout_ms = module_try_attempt(call)->call->deadline_ms - clock_monotonic_ms()},
        &rows);
    if (fault) {
        const char *detail = fault == FAULT_AARG ? "The search makes something else of an argument." : NULL;
        module_try_fail(call, fault, detail, detail ? name : NULL);
        return NULL;
    }
    const struct json *root = read_rows(call, name, rows);
    if (root)
        root = open_ids(call, name, root);
    if (root && search->is_judged)
        root = module_search_sight(call, name, root);
    return root ? value_of(root) : NULL;
}
