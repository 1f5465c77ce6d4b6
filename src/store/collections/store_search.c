/* store_search: searches and selects of applications; each text is prepared once in a session, with LRU
 * eviction. */
#include "store/collections/store_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "model/document/mutation.h"
#include "model/schema/search.h"
#include "store/documents/schema_cache.h"
#include "store/refusal.h"
#include "store/store_cache.h"
#include "store/store_long.h"
#include "store/store_sealing.h"
#include "store/documents/store_shown.h"
#include "edge/pg/pg_pipeline.h"

enum { PREPARED_MOST = 64 };

struct search_cache {
    uint64_t turn, number;
    char sqlstate[6]; /* of the last preparation */
    struct prepared {
        char *sql; /* NULL: free */
        char name[32];
        uint64_t used;
    } list[PREPARED_MOST];
};

static void close_cache(void *pointer)
{
    struct search_cache *searches = pointer;
    for (size_t i = 0; i < PREPARED_MOST; i++)
        free(searches->list[i].sql);
}

const struct store_cache store_cache_searches = {.size = sizeof(struct search_cache), .close = close_cache};

static struct search_cache *cache_of(const struct store *store, int ns)
{
    return store_cache_of(store, ns, STORE_CACHE_searches);
}

/* The statement of this text, or the one that it replaces. */
static struct prepared *store_search_find_place(struct search_cache *searches, const char *sql)
{
    struct prepared *oldest = &searches->list[0];
    for (struct prepared *one = searches->list; one < searches->list + PREPARED_MOST; one++) {
        if (one->sql && strcmp(one->sql, sql) == 0)
            return one;
        if (oldest->sql && (!one->sql || one->used < oldest->used))
            oldest = one;
    }
    return oldest;
}

/* Preparation takes locks and may have to wait for them: not longer than the statement itself may take. */
static enum fault prepare_limited(struct store *store, int ns, struct arena *arena, int64_t limit_ms,
                                  const struct pg_statement *statement)
{
    struct pg *pg = store_pg(store, ns);
    if (limit_ms) {
        enum fault fault =
            pg_execute(pg, arena_printf(arena, "set statement_timeout = %lld", (long long)limit_ms));
        if (fault)
            return fault;
    }
    enum fault fault = statement->parameters ? pg_prepare_texts(pg, statement) : pg_prepare(pg, statement, 1);
    struct search_cache *searches = cache_of(store, ns);
    snprintf(searches->sqlstate, sizeof searches->sqlstate, "%s", pg_sqlstate(pg));
    if (!limit_ms || (fault && store_in_snapshot(store, ns))) /* its end resets the limit */
        return fault;
    enum fault reset = pg_execute(pg, "reset statement_timeout");
    return fault ? fault : reset;
}

/* `texts`: the number of parameters, if all of them have type text; 0: PostgreSQL infers their types.
 * `limit_ms`: the time limit of the preparation; 0: the general limit. */
static enum fault store_search_prepare(struct store *store, int ns, struct arena *arena, const char *sql,
                                       int texts, int64_t limit_ms, const char **name_r)
{
    struct search_cache *searches = cache_of(store, ns);
    struct pg *pg = store_pg(store, ns);
    struct prepared *place = store_search_find_place(searches, sql);
    place->used = ++searches->turn;
    searches->sqlstate[0] = '\0';
    *name_r = place->name;
    if (place->sql && strcmp(place->sql, sql) == 0)
        return FAULT_NONE;
    enum fault fault = FAULT_NONE;
    if (place->sql)
        fault = pg_execute(pg, arena_printf(arena, "deallocate %s", place->name));
    free(place->sql);
    place->sql = NULL;
    snprintf(place->name, sizeof place->name, "search_%llu", (unsigned long long)++searches->number);
    const struct pg_statement statement = {place->name, sql, texts};
    if (!fault)
        fault = prepare_limited(store, ns, arena, limit_ms, &statement);
    if (!fault && !(place->sql = strdup(sql)))
        log_fatal("out of memory searches");
    return fault;
}

static void store_search_give_up(struct store *store, int ns, struct arena *arena, const char *sql)
{
    struct prepared *place = store_search_find_place(cache_of(store, ns), sql);
    struct pg *pg = store_pg(store, ns);
    if (!place->sql || strcmp(place->sql, sql) != 0 || !pg_is_usable(pg))
        return;
    free(place->sql);
    place->sql = NULL;
    (void)!pg_execute(pg, arena_printf(arena, "deallocate %s", place->name));
}

struct text_run {
    const char *sql;
    const struct pg_params *params;
    struct pg_result **result; /* of a search */
    struct bytes *rows;        /* of a select */
};

static enum fault store_search_run(struct store *store, int ns, int64_t limit_ms, void *context)
{
    const struct text_run *search = context;
    const struct pg_params *params = search->params;
    const char *name, *sql = search->sql;
    struct pg *pg = store_pg(store, ns);
    enum fault fault = store_search_prepare(store, ns, params->arena, sql, 0, limit_ms, &name);
    if (fault)
        fault = schema_cache_judge(store, ns, cache_of(store, ns)->sqlstate, fault);
    else
        fault =
            store_long_run_limited(pg, limit_ms, store_pipeline_ms(store),
                                   &(struct pg_statement){name, sql, params->count}, params, search->result);
    if (!fault)
        return FAULT_NONE;
    if (refusal_of(pg_sqlstate(pg)) == REFUSAL_LOOKED)
        return FAULT_ALIMIT;
    if (strcmp(pg_sqlstate(pg), "22003") == 0) /* a number out of range */
        return FAULT_AARG;
    fault = schema_cache_judge(store, ns, pg_sqlstate(pg), fault);
    if (fault == FAULT_STALE) /* the result of its preparation may be out of date */
        store_search_give_up(store, ns, params->arena, sql);
    return fault;
}

/* Rows of a page, without the one that only shows that there are more. */
static enum fault store_search_read_page(struct store *store, int ns, const struct search *search,
                                         struct arena *arena, const struct pg_result *result,
                                         struct search_page *page_r)
{
    enum fault fault = FAULT_NONE;
    size_t rows = (size_t)pg_rows(result);
    struct search_found *found = ARENA_ARRAY(arena, struct search_found, rows);
    size_t whole = search->wants_items && rows ? (size_t)pg_get_i64(result, 0, SEARCH_PAGE) : rows;
    page_r->has_more = rows && (whole > (size_t)search->limit || rows < whole);
    page_r->count = rows > (size_t)search->limit ? (size_t)search->limit : rows;
    page_r->found = found;
    for (size_t i = 0; i < page_r->count && !fault; i++) {
        int row = (int)i;
        found[i].id = pg_get_text(result, row, SEARCH_ID);
        for (size_t f = 0; f < search->order_count; f++)
            found[i].order[f] =
                pg_get_text(result, row, 1 + (int)f + (search->wants_items ? SEARCH_PAGE : SEARCH_ID));
        fault = store_sealing_open_id(store, ns, arena, search->class->name, &found[i].id);
        if (fault || !search->wants_items)
            continue;
        found[i].item = (struct item){.iclass = search->item->name,
                                      .key = pg_get_text(result, row, SEARCH_KEY),
                                      .version = pg_get_i64(result, row, SEARCH_VERSION),
                                      .content = pg_get_text(result, row, SEARCH_CONTENT),
                                      .raw = pg_get_bool(result, row, SEARCH_RAW)};
        const struct header header = {.class = search->class->name, .id = found[i].id};
        fault = store_sealing_open_item(store, ns, arena, &header, &found[i].item);
        if (!fault && mutation_applies(search->class))
            found[i].item.content =
                mutation_apply(arena, search->class, search->item->name, found[i].item.content);
    }
    return fault;
}

/* Only equality is the same for ids in clear and as they are stored. */
static enum fault seal_values(const struct data_keys *keys, struct arena *arena, struct bytes class,
                              struct search_condition *condition)
{
    if (condition->field)
        return FAULT_NONE;
    if (!search_is_whole(condition->test))
        return FAULT_OENCRYPTED;
    condition->values[0].text = data_keys_seal_id(keys, arena, class, condition->values[0].text);
    struct search_value *list = ARENA_ARRAY(arena, struct search_value, condition->list_count);
    for (size_t v = 0; v < condition->list_count; v++)
        list[v].text = data_keys_seal_id(keys, arena, class, condition->list[v].text);
    condition->list = list;
    return FAULT_NONE;
}

/* Where ids are encrypted: the ids of the search as they are stored. */
static enum fault seal_ids(const struct data_keys *keys, struct arena *arena, struct search *search)
{
    struct bytes class = search->class->name;
    enum fault fault = FAULT_NONE;
    if (!data_keys_encrypts_ids(keys, class))
        return FAULT_NONE;
    search->after_id = data_keys_seal_id(keys, arena, class, search->after_id);
    for (size_t b = 0; b < search->branch_count; b++)
        for (size_t i = 0; i < search->branches[b].count && !fault; i++)
            fault = seal_values(keys, arena, class, &search->branches[b].conditions[i]);
    return fault;
}

struct composition {
    const struct search *search;
    bool counts;
    const struct search_totals *totals; /* NULL: none */
    const struct search_approved *approved;
};

static void compose_search(const struct composition *composition, const struct search *search,
                           struct builder *sql, struct pg_params *params)
{
    if (composition->totals)
        search_totals_compose(search, composition->totals, composition->approved, sql, params);
    else if (composition->counts)
        search_compose_count(search, sql, params);
    else
        search_compose(search, sql, params);
}

/* The result of its statement. */
static enum fault run_search(struct store *store, int ns, struct arena *arena,
                             const struct composition *composition, struct pg_result **result_r)
{
    struct builder sql = {0};
    struct pg_params params;
    struct search sealed = *composition->search;
    struct pg *pg;
    enum fault fault = store_sealing_use(store, ns, &pg); /* which has the keys of an encrypted namespace */
    if (!fault)
        fault = seal_ids(store_sealing_keys(store, ns), arena, &sealed);
    if (fault)
        return fault;
    pg_params_start(&params, arena);
    const struct search shown = store_shown_search(store_sealing_keys(store, ns), arena, &sealed);
    compose_search(composition, &shown, &sql, &params);
    const char *text = builder_take(&sql, arena).data;
    return store_long_run(store, ns, 0, store_search_run,
                          &(struct text_run){.sql = text, .params = &params, .result = result_r});
}

enum fault store_search(struct store *store, int ns, struct arena *arena, const struct search *search,
                        struct search_page *page_r)
{
    struct pg_result *result;
    return FAULT_FIRST(run_search(store, ns, arena, &(struct composition){.search = search}, &result),
                       store_search_read_page(store, ns, search, arena, result, page_r));
}

enum fault store_search_count(struct store *store, int ns, struct arena *arena, const struct search *search,
                              int64_t *count_r)
{
    struct pg_result *result;
    enum fault fault =
        run_search(store, ns, arena, &(struct composition){.search = search, .counts = true}, &result);
    *count_r = fault ? 0 : pg_get_i64(result, 0, 0);
    return fault;
}

/* The ids as they are stored. */
static enum fault seal_approved(struct store *store, int ns, struct arena *arena, const struct search *search,
                                struct search_approved *approved)
{
    struct pg *pg;
    enum fault fault = store_sealing_use(store, ns, &pg);
    struct bytes *ids = ARENA_ARRAY(arena, struct bytes, approved->count);
    for (size_t i = 0; i < approved->count && !fault; i++)
        ids[i] =
            data_keys_seal_id(store_sealing_keys(store, ns), arena, search->class->name, approved->ids[i]);
    approved->ids = ids;
    return fault;
}

enum fault store_search_totals(struct store *store, int ns, struct arena *arena, const struct search *search,
                               const struct search_totals *totals, const struct search_approved *approved,
                               struct search_sums *sums_r)
{
    struct composition composition = {.search = search, .totals = totals};
    struct search_approved sealed;
    struct pg_result *result;
    enum fault fault = FAULT_NONE;
    if (approved) {
        sealed = *approved;
        composition.approved = &sealed;
        fault = seal_approved(store, ns, arena, search, &sealed);
    }
    if (!fault)
        fault = run_search(store, ns, arena, &composition, &result);
    if (fault)
        return fault;
    size_t rows = (size_t)pg_rows(result), values = totals->group_count + totals->count;
    struct search_total *list = ARENA_ARRAY(arena, struct search_total, rows);
    *sums_r = (struct search_sums){.list = list,
                                   .has_more = rows > TOTALS_ROWS_MOST,
                                   .found = rows ? pg_get_i64(result, 0, TOTALS_FOUND) : 0,
                                   .count = rows > TOTALS_ROWS_MOST ? TOTALS_ROWS_MOST : rows};
    for (size_t i = 0; i < sums_r->count; i++) {
        struct bytes *texts = ARENA_ARRAY(arena, struct bytes, values);
        for (size_t v = 0; v < values; v++)
            if (!pg_is_null(result, (int)i, TOTALS_VALUES + (int)v))
                texts[v] = pg_get_text(result, (int)i, TOTALS_VALUES + (int)v);
        list[i] = (struct search_total){pg_get_i64(result, (int)i, TOTALS_COUNT), texts};
    }
    return FAULT_NONE;
}

enum fault store_search_marks(struct store *store, int ns, struct arena *arena,
                              const struct search_condition *match, struct bytes texts, struct bytes secret,
                              size_t count, struct bytes *rows_r)
{
    struct builder sql = {0};
    struct pg_params params;
    struct pg_result *result;
    pg_params_start(&params, arena);
    search_marks_compose(match, texts, secret, &sql, &params);
    const char *text = builder_take(&sql, arena).data;
    enum fault fault = store_long_run(store, ns, 0, store_search_run,
                                      &(struct text_run){.sql = text, .params = &params, .result = &result});
    assert(fault || (size_t)pg_rows(result) == count);
    for (size_t i = 0; i < count && !fault; i++)
        rows_r[i] = pg_get_text(result, (int)i, 0);
    return fault;
}

/* --- named searches ------------------------------------------------------------------------------ */

/* What the search itself, not the server, has come to. */
static enum fault judge_named(const char *sqlstate, enum fault fault)
{
    bool is_lost = strcmp(sqlstate, "42883") == 0 || strcmp(sqlstate, "42501") == 0;
    if (is_lost || refusal_of(sqlstate) == REFUSAL_UNOWNED) /* no such function, or not ours to run */
        return FAULT_OBUILDING;
    if (strcmp(sqlstate, "53400") == 0)
        return FAULT_ALIMIT;
    return strncmp(sqlstate, "22", 2) == 0 ? FAULT_AARG : fault;
}

enum fault store_search_named(struct store *store, int ns, struct arena *arena,
                              const struct named_search *search, int64_t schema_number,
                              const struct pg_params *values, struct named_rows *rows_r)
{
    const struct settings *settings = store_settings(store);
    struct builder sql = {0};
    struct pg_result *result;
    struct pg_params *params = pg_params_copy(values);
    *rows_r = (struct named_rows){0};
    PG_PARAMS_ADD(params, PG_I64(schema_number), PG_I64(settings->limit_search_rows + 1),
                  PG_I64(settings->limit_document_bytes));
    named_search_add_call(search, &sql);
    const char *text = builder_take(&sql, arena).data;
    enum fault fault = store_long_run(store, ns, 0, store_search_run,
                                      &(struct text_run){.sql = text, .params = params, .result = &result});
    if (fault == FAULT_XDATABASE && store_pg(store, ns))
        fault = judge_named(pg_sqlstate(store_pg(store, ns)), fault);
    if (fault)
        return fault;
    size_t count = (size_t)pg_rows(result);
    rows_r->rows = ARENA_ARRAY(arena, struct bytes, count);
    rows_r->has_more = count > (size_t)settings->limit_search_rows;
    count -= rows_r->has_more;
    for (; rows_r->count < count; rows_r->count++) {
        if (pg_is_null(result, (int)rows_r->count, 0)) {
            rows_r->has_more = true;
            break;
        }
        rows_r->rows[rows_r->count] = pg_get_text(result, (int)rows_r->count, 0);
    }
    return FAULT_NONE;
}

/* --- selects of applications --------------------------------------------------------------------- */

static const char limit_statement[] =
    "select set_config('transaction_read_only', 'on', true), set_config('statement_timeout', $1::text, true)";

/* An error of the select itself is the fault of neither server nor caller, and is not retried. */
static enum fault judge_refusal(const struct pg_verdict *verdict)
{
    if (strncmp(verdict->sqlstate, "22", 2) == 0) /* a text that is not a number, not a date, … */
        return FAULT_AARG;
    if (strcmp(verdict->sqlstate, "25006") == 0 || strcmp(verdict->sqlstate, "08P01") == 0)
        return FAULT_XDATABASE; /* it wants to write; it has other parameters */
    return verdict->fault;
}

/* Both statements are one transaction; the setting of the first lasts until its end. */
static enum fault run_select(struct store *store, int ns, int64_t limit_ms, void *context)
{
    const struct text_run *select = context;
    const struct pg_params *params = select->params;
    const char *sql = select->sql;
    const char *first, *second;
    struct pg *pg = store_pg(store, ns);
    struct pg_verdict verdict;
    struct pg_params *limits =
        PG_PARAMS(params->arena, PG_TEXT(bytes_of(arena_printf(params->arena, "%lld", (long long)limit_ms))));
    enum fault fault =
        FAULT_FIRST(store_search_prepare(store, ns, params->arena, limit_statement, 0, 0, &first),
                    store_search_prepare(store, ns, params->arena, sql, params->count, limit_ms, &second),
                    pg_pipeline_begin(pg, params->arena));
    if (fault)
        return fault;
    pg_pipeline_add(pg, &(struct pg_statement){first, limit_statement, limits->count}, limits);
    pg_pipeline_add(pg, &(struct pg_statement){second, sql, params->count}, params);
    pg_pipeline_run(pg, store_pipeline_ms(store), &verdict);
    if (verdict.outcome != PG_COMMITTED)
        return judge_refusal(&verdict);
    *select->rows = pg_is_null(verdict.results[1], 0, 0) ? NO_BYTES : pg_get_text(verdict.results[1], 0, 0);
    return FAULT_NONE;
}

enum fault store_search_select(struct store *store, int ns, struct arena *arena,
                               const struct selection *selection, struct bytes *rows_r)
{
    /* The newline closes a comment at the end of the text. */
    const char *sql = arena_printf(
        arena,
        "select case when octet_length(t.rows) <= %zu then t.rows end from (select coalesce(json_agg(r),"
        " '[]')::text as rows from (select * from (%s\n) q limit %d) r) t",
        selection->bytes, selection->sql, (int)selection->rows);
    int64_t limit_ms = store_settings(store)->statement_timeout_ms;
    struct pg_params params;
    if (selection->timeout_ms <= 0)
        return FAULT_XTIME;
    limit_ms = selection->timeout_ms < limit_ms ? selection->timeout_ms : limit_ms;
    pg_params_start(&params, arena);
    for (size_t i = 0; i < selection->count; i++)
        pg_params_add_text(&params, selection->values[i]);
    return store_long_run(store, ns, limit_ms, run_select,
                          &(struct text_run){.sql = sql, .params = &params, .rows = rows_r});
}
