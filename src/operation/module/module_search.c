/* module_search: searches written in SQL, for a module (stampd.h). */
#include "operation/module/module_convert.h"
#include "operation/module/module.h"
#include "operation/module/module_search_sight.h"
#include "operation/module/module_try.h"

#include "base/clock.h"
#include "store/store_search.h"

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
    if (root && search->is_judged)
        root = module_search_sight(call, name, root);
    return root ? value_of(root) : NULL;
}
