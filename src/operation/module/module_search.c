/* module_search: searches written in SQL, for a module (stampd.h). */
#include "operation/module/module_convert.h"
#include "operation/module/module.h"
#include "operation/module/module_search_sight.h"
#include "operation/module/module_try.h"

#include "base/clock.h"
#include "store/store_sealing.h"
#include "store/collections/store_search.h"

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
