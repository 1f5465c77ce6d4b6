/* store_search: searches, each text of them prepared once in a session; the least recently used is given up
 * when there are too many. */
#include "document/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "document/mutation.h"
#include "document/store_private.h"

enum { PREPARED_MOST = 64 };

struct store_search {
    uint64_t turn, number;
    struct prepared {
        char *sql; /* NULL: free */
        char name[32];
        uint64_t used;
    } list[PREPARED_MOST];
};

void store_forget_searches(struct store_session *session)
{
    for (size_t i = 0; session->search && i < PREPARED_MOST; i++)
        free(session->search->list[i].sql);
    free(session->search);
    session->search = NULL;
}

/* The statement of this text, or the one whose place it takes. */
static struct prepared *find_place(struct store_search *searches, const char *sql)
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

static enum fault prepare(struct store_session *session, struct arena *arena, const char *sql,
                          const char **name_r)
{
    if (!session->search && !(session->search = calloc(1, sizeof *session->search)))
        log_fatal("out of memory searches");
    struct store_search *searches = session->search;
    struct prepared *place = find_place(searches, sql);
    place->used = ++searches->turn;
    *name_r = place->name;
    if (place->sql && strcmp(place->sql, sql) == 0)
        return FAULT_NONE;
    enum fault fault = FAULT_NONE;
    if (place->sql)
        fault = pg_execute(session->pg, arena_printf(arena, "deallocate %s", place->name));
    free(place->sql);
    place->sql = NULL;
    snprintf(place->name, sizeof place->name, "search_%llu", (unsigned long long)++searches->number);
    if (!fault)
        fault = pg_prepare(session->pg, &(struct pg_statement){place->name, sql, 0}, 1);
    if (!fault && !(place->sql = strdup(sql)))
        log_fatal("out of memory searches");
    return fault;
}

static enum fault run(struct store_session *session, const char *sql, const struct pg_params *params,
                      struct pg_result **result_r)
{
    const char *name;
    enum fault fault = prepare(session, params->arena, sql, &name);
    if (!fault)
        fault = pg_run(session->pg, &(struct pg_statement){name, sql, params->count}, params, result_r);
    return fault ? store_judge_schema(session, pg_sqlstate(session->pg), fault) : FAULT_NONE;
}

/* Rows of a page, without the one that only tells that there is more. */
static void read_page(const struct search *search, struct arena *arena, const struct pg_result *result,
                      struct search_page *page_r)
{
    size_t rows = (size_t)pg_rows(result);
    struct search_found *found = ARENA_ARRAY(arena, struct search_found, rows);
    size_t whole = search->wants_items && rows ? (size_t)pg_get_i64(result, 0, SEARCH_PAGE) : rows;
    page_r->has_more = rows && (whole > (size_t)search->limit || rows < whole);
    page_r->count = rows > (size_t)search->limit ? (size_t)search->limit : rows;
    page_r->found = found;
    for (size_t i = 0; i < page_r->count; i++) {
        int row = (int)i;
        found[i].id = pg_get_text(result, row, SEARCH_ID);
        if (!search->wants_items)
            continue;
        found[i].item = (struct item){.iclass = search->item->name,
                                      .key = pg_get_text(result, row, SEARCH_KEY),
                                      .version = pg_get_i64(result, row, SEARCH_VERSION),
                                      .content = pg_get_text(result, row, SEARCH_CONTENT),
                                      .raw = pg_get_bool(result, row, SEARCH_RAW)};
        if (search->class->is_old)
            found[i].item.content =
                mutation_apply(arena, search->class, search->item->name, found[i].item.content);
    }
}

enum fault store_search(struct store *store, int space, struct arena *arena, const struct search *search,
                        struct search_page *page_r)
{
    struct builder sql = {0};
    struct pg_params params;
    struct pg_result *result = NULL;
    pg_params_start(&params, arena);
    search_compose(search, &sql, &params);
    const char *text = arena_copy(arena, sql.data, sql.size);
    builder_free(&sql);
    enum fault fault;
    int attempt = 0;
    do {
        struct pg *pg;
        fault = store_use(store, space, &pg);
        if (!fault)
            fault = run(&store->sessions[space], text, &params, &result);
    } while (store_reads_again(store, space, fault, attempt++));
    if (!fault)
        read_page(search, arena, result, page_r);
    return fault;
}
