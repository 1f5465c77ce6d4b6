/* store_sight: rows are few, so results are compared with what was asked one by one. */
#include "store/collections/store_sight.h"

#include <inttypes.h>

#include "store/store_run.h"

/* Columns of SIGHT_CHANGES, and its kinds of rows. */
enum { KIND, TEXT, NUMBER, SINCE, FLOOR, HAS_CHANGED_TEAMS };
enum { KIND_STATE, KIND_TEAM, KIND_LOST };

static struct bytes number_text(struct arena *arena, int64_t number)
{
    return bytes_of(arena_printf(arena, "%" PRId64, number));
}

static struct bytes or_empty(struct bytes text)
{
    return text.data ? text : BYTES("");
}

enum fault store_sight_declare(struct store *store, int ns, struct arena *arena, int64_t mark,
                               struct bytes places)
{
    if (store_in_snapshot(store, ns))
        return FAULT_STALE;
    struct pg_params *params = PG_PARAMS(arena, PG_I64(mark), PG_TEXT(places));
    return FAULT_FIRST(store_run_statement(store, ns, STATEMENT_SIGHT_DECLARE, params, NULL),
                       store_run_statement(store, ns, STATEMENT_SIGHT_DECLARE, params, NULL));
}

static void read_changes(const struct pg_result *result, const struct store_sight_query *query,
                         struct store_sight_changes *changes)
{
    size_t rows = (size_t)pg_rows(result), own = query->sight->principal_count, teams = 0;
    changes->principals = ARENA_ARRAY(query->arena, struct bytes, own + rows + 1);
    changes->lost = ARENA_ARRAY(query->arena, struct store_sight_lost, rows + 1);
    for (; changes->principal_count < own; changes->principal_count++)
        changes->principals[changes->principal_count] = query->sight->principals[changes->principal_count];
    for (int row = 0; row < pg_rows(result); row++) {
        switch (pg_get_i64(result, row, KIND)) {
        case KIND_STATE:
            changes->mark = pg_get_i64(result, row, NUMBER);
            changes->since = pg_get_i64(result, row, SINCE);
            changes->floor = pg_get_i64(result, row, FLOOR);
            changes->has_changed_teams = pg_get_bool(result, row, HAS_CHANGED_TEAMS);
            break;
        case KIND_TEAM:
            teams++;
            changes->principals[changes->principal_count++] =
                rules_sight_team(query->arena, pg_get_text(result, row, TEXT));
            break;
        case KIND_LOST:
            changes->lost[changes->lost_count++] = (struct store_sight_lost){
                .id = pg_get_text(result, row, TEXT), .version = pg_get_i64(result, row, NUMBER)};
            break;
        }
    }
    changes->has_more = teams > STORE_SIGHT_MOST || changes->lost_count > STORE_SIGHT_MOST;
}

enum fault store_sight_changes(struct store *store, int ns, const struct store_sight_query *query,
                               struct store_sight_changes *changes_r)
{
    const struct rules_sight *sight = query->sight;
    struct pg_result *result;
    *changes_r = (struct store_sight_changes){0};
    const struct pg_params *params = PG_PARAMS(
        query->arena, PG_TEXT(query->class), PG_TEXT(number_text(query->arena, query->from)),
        PG_TEXT(or_empty(query->account)), PG_TEXTS(sight->principals, sight->principal_count),
        PG_TEXT(or_empty(sight->team_class)), PG_TEXT(or_empty(sight->team_members)),
        PG_TEXTS(sight->team_principals, sight->team_principal_count),
        PG_TEXTS(sight->team_watched, sight->team_watched_count), PG_I64(STORE_SIGHT_MOST + INT64_C(1)));
    enum fault fault = store_run_statement(store, ns, STATEMENT_SIGHT_CHANGES, params, &result);
    if (!fault)
        read_changes(result, query, changes_r);
    return fault;
}

static size_t store_sight_find(const struct bytes *ids, size_t count, struct bytes id)
{
    size_t place = 0;
    while (place < count && !bytes_equal(ids[place], id))
        place++;
    return place;
}

enum fault store_sight_since(struct store *store, int ns, const struct store_sight_query *query,
                             const struct store_sight_changes *changes, const struct bytes *ids, size_t count,
                             int64_t *since_r)
{
    struct pg_result *result;
    struct pg_params *params =
        PG_PARAMS(query->arena, PG_TEXT(query->class), PG_TEXTS(ids, count),
                  PG_TEXT(or_empty(query->account)), PG_TEXTS(changes->principals, changes->principal_count));
    for (size_t i = 0; i < count; i++)
        since_r[i] = 0;
    enum fault fault =
        count ? store_run_statement(store, ns, STATEMENT_SIGHT_SINCE, params, &result) : FAULT_NONE;
    for (int row = 0; !fault && count && row < pg_rows(result); row++) {
        size_t place = store_sight_find(ids, count, pg_get_text(result, row, 0));
        if (place < count)
            since_r[place] = pg_get_i64(result, row, 1);
    }
    return fault;
}

enum fault store_sight_had(struct store *store, int ns, const struct store_sight_query *query,
                           const struct store_sight_changes *changes, const struct bytes *ids,
                           const int64_t *versions, size_t count, bool *had_r)
{
    struct pg_result *result;
    struct pg_params *params =
        PG_PARAMS(query->arena, PG_TEXT(query->class), PG_TEXTS(ids, count), PG_I64S(versions, count),
                  PG_TEXTS(changes->principals, changes->principal_count));
    for (size_t i = 0; i < count; i++)
        had_r[i] = false;
    enum fault fault =
        count ? store_run_statement(store, ns, STATEMENT_SIGHT_HAD, params, &result) : FAULT_NONE;
    for (int row = 0; !fault && count && row < pg_rows(result); row++)
        had_r[pg_get_i64(result, row, 0)] = true;
    return fault;
}

enum fault store_sight_written(struct store *store, int ns, const struct store_sight_query *query,
                               const struct bytes *ids, const struct bytes *hidden, size_t count, bool *are_r)
{
    const struct rules_sight *sight = query->sight;
    struct pg_result *result;
    struct pg_params *params =
        PG_PARAMS(query->arena, PG_TEXT(query->class), PG_TEXTS(ids, count), PG_TEXTS(hidden, count),
                  PG_I64(query->from), PG_TEXTS(sight->watched, sight->watched_count),
                  PG_TEXT(or_empty(query->account)), PG_TEXT(or_empty(sight->team_class)),
                  PG_TEXT(or_empty(sight->team_members)));
    for (size_t i = 0; i < count; i++)
        are_r[i] = false;
    enum fault fault =
        count ? store_run_statement(store, ns, STATEMENT_SIGHT_WRITTEN, params, &result) : FAULT_NONE;
    for (int row = 0; !fault && count && row < pg_rows(result); row++) {
        size_t place = store_sight_find(ids, count, pg_get_text(result, row, 0));
        if (place < count)
            are_r[place] = true;
    }
    return fault;
}
