/* store_list: pages of headers, and pages of classes. */
#include "store/collections/store_list.h"

#include "model/schema/search_prefix.h"
#include "store/statements.h"
#include "store/store_long.h"
#include "store/store_sealing.h"

/* Rows read for one page: zombies and documents not changed since are read too, so the page size is no
 * bound. */
enum { LIST_ROWS = 10000 };

enum { ID, VERSION, CTIME, DTIME, V1, V2, NUMBER };

static void add_bounds(struct pg_params *params, const struct list_query *query)
{
    struct bytes end;
    if (search_prefix_end(params->arena, query->prefix, &end)) {
        PG_PARAMS_ADD(params, PG_TEXT(query->class), PG_TEXT(end));
        return;
    }
    /* No end: up to the next possible class name. */
    char *next = arena_alloc(params->arena, query->class.size + 1);
    memcpy(next, query->class.data, query->class.size);
    next[query->class.size] = '\x01';
    PG_PARAMS_ADD(params, PG_TEXT((struct bytes){next, query->class.size + 1}), PG_TEXT(BYTES("")));
}

/* Rows in the order of ids: matching ones, and the last row read even if it does not match. */
static void store_list_read_page(const struct pg_result *result, const struct list_query *query,
                                 struct header *headers, size_t *count_r, struct bytes *more_r)
{
    int rows = pg_rows(result);
    size_t count = 0;
    *more_r = NO_BYTES;
    for (int row = 0; row < rows && !more_r->data; row++) {
        struct header header = {
            .class = query->class,
            .id = pg_get_text(result, row, ID),
            .version = pg_get_i64(result, row, VERSION),
            .ctime = pg_get_i64(result, row, CTIME),
            .dtime = pg_get_i64(result, row, DTIME),
            .v1 = pg_get_i64(result, row, V1),
            .v2 = pg_get_i64(result, row, V2),
        };
        bool is_wanted = header.ctime != 0 && header.version > query->after;
        if (is_wanted && count == (size_t)query->limit) { /* requested only to learn that there are more */
            *more_r = headers[count - 1].id;
            continue;
        }
        if (is_wanted)
            headers[count++] = header;
        if (pg_get_i64(result, row, NUMBER) == LIST_ROWS)
            *more_r = header.id;
    }
    *count_r = count;
}

enum fault store_list(struct store *store, int ns, struct arena *arena, const struct list_query *query,
                      struct header **headers_r, size_t *count_r, struct bytes *more_r)
{
    assert(query->limit > 0);
    struct pg *pg;
    enum fault fault = query->prefix.size ? store_sealing_use(store, ns, &pg) : FAULT_NONE;
    if (fault)
        return fault;
    if (query->prefix.size && data_keys_encrypts_ids(store_sealing_keys(store, ns), query->class))
        return FAULT_OENCRYPTED; /* the stored ids have other beginnings */
    struct pg_params *params =
        PG_PARAMS(arena, PG_TEXT(query->class), PG_TEXT(query->cursor.data ? query->cursor : BYTES("")),
                  PG_TEXT(query->prefix.data ? query->prefix : BYTES("")));
    add_bounds(params, query);
    PG_PARAMS_ADD(params, PG_I64(query->after), PG_I64((int64_t)query->limit + 1), PG_I64(LIST_ROWS),
                  PG_I64(query->minute));

    struct pg_result *result;
    fault = store_long_run_statement(store, ns, STATEMENT_LIST, params, &result);
    if (fault)
        return fault;
    *headers_r = arena_alloc(arena, (size_t)pg_rows(result) * sizeof **headers_r);
    store_list_read_page(result, query, *headers_r, count_r, more_r);
    return FAULT_NONE;
}

enum fault store_list_classes(struct store *store, int ns, struct arena *arena, struct bytes cursor,
                              int32_t limit, struct bytes **classes_r, size_t *count_r)
{
    assert(limit > 0);
    struct pg_params *params = PG_PARAMS(arena, PG_TEXT(cursor.data ? cursor : BYTES("")), PG_I64(limit));
    struct pg_result *result;
    enum fault fault = store_long_run_statement(store, ns, STATEMENT_CLASSES, params, &result);
    if (fault)
        return fault;
    *count_r = (size_t)pg_rows(result);
    *classes_r = ARENA_ARRAY(arena, struct bytes, *count_r);
    for (size_t i = 0; i < *count_r; i++)
        (*classes_r)[i] = pg_get_text(result, (int)i, 0);
    return FAULT_NONE;
}

enum fault store_list_volumes(struct store *store, int ns, struct arena *arena, int32_t limit,
                              struct volume **volumes_r, size_t *count_r)
{
    enum { CLASS, DOCUMENTS, SUM_V1, SUM_V2 };
    struct pg_result *result;
    assert(limit > 0);
    enum fault fault = store_long_run_statement(store, ns, STATEMENT_VOLUMES,
                                                PG_PARAMS(arena, PG_I64((int64_t)limit + 1)), &result);
    if (fault)
        return fault;
    *count_r = (size_t)pg_rows(result);
    *volumes_r = ARENA_ARRAY(arena, struct volume, *count_r);
    for (int i = 0; i < pg_rows(result); i++)
        (*volumes_r)[i] =
            (struct volume){.class = pg_is_null(result, i, CLASS) ? NO_BYTES : pg_get_text(result, i, CLASS),
                            .documents = pg_get_i64(result, i, DOCUMENTS),
                            .v1 = pg_get_i64(result, i, SUM_V1),
                            .v2 = pg_get_i64(result, i, SUM_V2)};
    return FAULT_NONE;
}
