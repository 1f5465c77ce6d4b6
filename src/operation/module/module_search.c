/* module_search: searches written in SQL, for a module (stampd.h). */
#include "operation/module/module_convert.h"

#include "base/clock.h"
#include "edge/json/json.h"
#include "operation/access/access.h"
#include "operation/judge/judge.h"
#include "operation/judge/judged_page.h"
#include "operation/module/module.h"
#include "operation/module/module_document.h"
#include "operation/module/module_try.h"
#include "segment/counts/limiter.h"
#include "stampd.h"
#include "store/collections/store_search.h"
#include "store/store_sealing.h"

/* --- module access: what the caller of an operation may do where no rules decide --- */

/* --- the caller --- */

static const struct rules_caller *caller_of(const struct stampd_call *call)
{
    return &module_try_attempt(call)->call->caller;
}

static const char *module_access_text_of(const struct stampd_call *call, struct bytes bytes)
{
    return bytes.data ? arena_copy(module_try_arena(call), bytes.data, bytes.size) : NULL;
}

const char *stampd_caller(const struct stampd_call *call)
{
    return module_access_text_of(call, caller_of(call)->account);
}

size_t stampd_role_count(const struct stampd_call *call)
{
    return caller_of(call)->role_count;
}

const char *stampd_role(const struct stampd_call *call, size_t place)
{
    const struct rules_caller *caller = caller_of(call);
    return place < caller->role_count ? module_access_text_of(call, caller->roles[place]) : NULL;
}

bool stampd_has_role(const struct stampd_call *call, const char *role)
{
    const struct rules_caller *caller = caller_of(call);
    for (size_t i = 0; i < caller->role_count; i++)
        if (bytes_equal(caller->roles[i], bytes_of(role)))
            return true;
    return false;
}

/* --- the rules --- */

/* By the access of the namespace, or as a task of the server's own; always where rules decide. */
static bool module_access_allows(const struct stampd_call *try, enum access_level level)
{
    const struct call *call = module_try_attempt(try)->call;
    bool is_own = call->task && !call->task->is_of_client;
    return is_own || call->rules || call->level >= level;
}

/* NULL: any items. */
typedef enum fault judge(struct attempt *attempt, const struct document *document, const char *item_class,
                         bool *may_r);

static enum fault judge_read(struct attempt *attempt, const struct document *document, const char *item_class,
                             bool *may_r)
{
    struct view view;
    enum fault fault = judge_show(attempt, &document, &view);
    (void)item_class;
    *may_r = !fault && document_exists(document);
    return fault;
}

static enum fault judge_list(struct attempt *attempt, const struct document *document, const char *item_class,
                             bool *may_r)
{
    struct view view;
    enum fault fault = judge_show_listed(attempt, &document, &view);
    (void)item_class;
    *may_r = !fault && document_exists(document);
    return fault;
}

static enum fault judge_items(struct attempt *attempt, const struct document *document,
                              const char *item_class, bool *may_r)
{
    return judge_see(attempt, document, bytes_of(item_class), may_r);
}

static bool may_look(struct stampd_document *document, judge *decide, const char *item_class)
{
    bool may = false;
    if (!document->draft || !document_exists(draft_base(document->draft)) ||
        !module_access_allows(document->call, LEVEL_READ))
        return false;
    module_try_unwatch(document->call); /* it may load a team */
    enum fault fault =
        decide(module_try_attempt(document->call), draft_base(document->draft), item_class, &may);
    module_try_watch(document->call);
    if (fault)
        module_try_fail(document->call, fault, NULL, NULL);
    return may && !fault;
}

bool stampd_may_read(struct stampd_document *document)
{
    return may_look(document, judge_read, NULL);
}

bool stampd_may_list(struct stampd_document *document)
{
    return may_look(document, judge_list, NULL);
}

bool stampd_may_see(struct stampd_document *document, const char *item_class)
{
    return may_look(document, judge_items, item_class);
}

bool stampd_may_change(struct stampd_document *document)
{
    bool may = false;
    if (!document->draft || module_try_fault(document->call))
        return false;
    if (!draft_is_changed(document->draft))
        return true;
    if (!module_access_allows(document->call, LEVEL_WRITE))
        return false;
    module_try_unwatch(document->call);
    enum fault fault = judge_change(module_try_attempt(document->call), document->draft, &may);
    module_try_watch(document->call);
    if (fault)
        module_try_fail(document->call, fault, NULL, NULL);
    return may && !fault;
}

/* --- rates --- */

bool stampd_limit(struct stampd_call *call, const char *name, const char *subject, const char *rate)
{
    const struct attempt *attempt = module_try_attempt(call);
    struct arena *arena = module_try_arena(call);
    struct quota_rate read;
    if (module_try_is_filter(call))
        module_try_fail(call, FAULT_BMODULE, "A filter counts nothing.", name);
    if (module_try_fault(call))
        return false;
    if (!quotas_read_rate(arena, bytes_of(rate), &read)) {
        module_try_fail(call, FAULT_BMODULE, "This is no rate.", rate);
        return false;
    }
    const char *whole = arena_printf(arena, "%zu %s %s", strlen(name), name, subject);
    struct segment *segment = attempt->worker_context->segment;
    const struct limiter_rate limit = {read.count, read.period_ms, read.burst};
    uint64_t key = limiter_key(segment, attempt->ns, LIMITER_MODULES, bytes_of(whole));
    int64_t wait_ms = limiter_take(segment, key, &limit, 1, clock_monotonic_ms());
    if (!wait_ms)
        return true;
    attempt->reply->retry_after_s = (wait_ms + 999) / 1000;
    module_try_set_fault(call,
                         reply_fault(attempt->call, attempt->reply, FAULT_XBUSY, NULL, name, rate, NULL));
    return false;
}

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
    const struct bytes kept = builder_take(&text, arena);
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
    const struct bytes kept = builder_take(&text, module_try_arena(call));
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
