/* record_states: one query, and the rules of access about states and quotas. */
#include "serve/record_states.h"

#include "operation/access/access.h"
#include "records/records_state.h"

static const struct pg_statement configurations = {
    "record_states",
    "select id, content from stampd.item where class = 'Namespace' and iclass = 'Conf' and key = ''"
    " and not raw and content is not null order by id <> 'z', id",
    0};

static void take_rates(const struct quotas *quotas, struct records_state *state)
{
    if (!quotas)
        return;
    state->rates[RECORDS_REQUESTS] = quotas->rates[QUOTA_NAMESPACE][QUOTA_REQUESTS];
    state->rates[RECORDS_WRITES] = quotas->rates[QUOTA_NAMESPACE][QUOTA_WRITES];
}

/* False: it is no namespace that can be served. */
static bool read_state(struct arena *arena, struct bytes code, struct bytes content, const struct ns_conf *z,
                       struct records_state *state_r)
{
    struct ns_conf conf = namespace_read(arena, content);
    if (!conf.database.size || code.size > NAMESPACE_CODE_MOST ||
        !namespace_is_code(arena_copy(arena, code.data, code.size)))
        return false;
    access_add_state_of_z(&conf, z);
    *state_r = (struct records_state){
        .ns = code, .state = conf.state, .message = conf.message, .is_encrypted = conf.is_encrypted};
    take_rates(conf.quotas ? conf.quotas : z->quotas, state_r);
    return true;
}

bool record_states_read(struct records *records, struct arena *arena, struct pg *pg, bool *is_prepared)
{
    struct pg_params none;
    struct pg_result *rows;
    struct records_reading reading;
    struct records_state *states = ARENA_ARRAY(arena, struct records_state, RECORDS_STATES_MOST);
    struct ns_conf z = {.state = NS_ON};
    size_t count = 0;
    if (!*is_prepared && pg_prepare(pg, &configurations, 1))
        return false;
    *is_prepared = true;
    records_state_begin(records, &reading);
    pg_params_start(&none, arena);
    if (pg_run(pg, &configurations, &none, &rows))
        return false;
    for (int row = 0; row < pg_rows(rows); row++) {
        struct bytes code = pg_get_text(rows, row, 0), content = pg_get_text(rows, row, 1);
        if (bytes_equal(code, BYTES("z")))
            z = namespace_read(arena, content);
        else if (count < RECORDS_STATES_MOST && read_state(arena, code, content, &z, &states[count]))
            count++;
    }
    records_state_apply(records, &reading, states, count);
    return true;
}
