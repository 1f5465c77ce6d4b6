/* live_horizon: horizons in results and in ids of events. */
#include "live/live_horizon.h"

#include <inttypes.h>

#include "live/live_statement.h"
#include "operation/signed_text.h"

/* Transaction numbers in xmin wrap around: older ones cannot be compared. */
enum { REACH = INT32_MAX - 1000000 };
enum { KIND, LIFE = 3, FLOOR, XID, XID_NEXT, IS_SIGHT_KNOWN }; /* columns of LOOK and ROUND */

bool live_horizon_read(const struct pg_result *result, struct live_horizon *known_r, int64_t *next_r)
{
    for (int row = 0; row < pg_rows(result); row++)
        if (pg_get_i64(result, row, KIND) == LIVE_ROW_OF_ALL) {
            *known_r = (struct live_horizon){.life = pg_get_i64(result, row, LIFE),
                                             .horizon = pg_get_i64(result, row, XID),
                                             .floor = pg_get_i64(result, row, FLOOR)};
            *next_r = pg_get_i64(result, row, XID_NEXT);
            return true;
        }
    return false;
}

bool live_horizon_is_sight_known(const struct pg_result *result)
{
    for (int row = 0; row < pg_rows(result); row++)
        if (pg_get_i64(result, row, KIND) == LIVE_ROW_OF_ALL)
            return !pg_is_null(result, row, IS_SIGHT_KNOWN) && pg_get_bool(result, row, IS_SIGHT_KNOWN);
    return false;
}

bool live_horizon_is_within_reach(const struct live_horizon *since, const struct live_horizon *known,
                                  int64_t next)
{
    return since->life == known->life && since->horizon <= next && next - since->horizon < REACH;
}

/* --- ids --- */

static void make_question(struct builder *question, struct bytes ns)
{
    signed_text_add_part(question, BYTES("live"));
    signed_text_add_part(question, ns);
}

struct bytes live_horizon_write_id(struct arena *arena, struct bytes secret, struct bytes ns,
                                   const struct live_horizon *known)
{
    struct builder question = {0};
    make_question(&question, ns);
    const char *payload = arena_printf(arena, "%" PRId64 ".%" PRId64 ".%" PRId64 ".%" PRId64, known->life,
                                       known->horizon, known->floor, known->sight);
    struct bytes id = signed_text_make(arena, secret, builder_bytes(&question), bytes_of(payload));
    builder_free(&question);
    return id;
}

static bool live_horizon_take_number(struct bytes *text, char end, int64_t *number_r)
{
    const char *stop = end ? memchr(text->data, end, text->size) : text->data + text->size;
    if (!stop || !bytes_to_i64((struct bytes){text->data, (size_t)(stop - text->data)}, number_r))
        return false;
    text->size -= (size_t)(stop - text->data) + (end != '\0');
    text->data = stop + (end != '\0');
    return *number_r >= 0;
}

bool live_horizon_read_id(struct arena *arena, struct bytes secret, struct bytes ns, struct bytes id,
                          struct live_horizon *known_r)
{
    struct builder question = {0};
    struct bytes payload;
    make_question(&question, ns);
    bool is_ours = signed_text_read(arena, secret, builder_bytes(&question), id, &payload);
    builder_free(&question);
    return is_ours && live_horizon_take_number(&payload, '.', &known_r->life) &&
           live_horizon_take_number(&payload, '.', &known_r->horizon) &&
           live_horizon_take_number(&payload, '.', &known_r->floor) &&
           live_horizon_take_number(&payload, '\0', &known_r->sight) && known_r->horizon > 0;
}
