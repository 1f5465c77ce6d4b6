/* module_search_sight: the documents of the rows are loaded and judged as those of a page of `find`. */
#include "operation/module/module_search_sight.h"

#include "operation/judge/judged_page.h"
#include "operation/module/module_access.h"
#include "operation/module/module_try.h"

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

const struct json *module_search_sight(struct stampd_call *call, const char *search, const struct json *rows)
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
