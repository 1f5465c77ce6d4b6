/* claims: what is said to z, and to whom z names. */
#include "document/claims.h"

#include "base/clock.h"
#include "base/log.h"
#include "document/statements.h"

/* How often a claim is tried again after one in its way was dropped. */
enum { TRIES = 4 };

/* Columns of GLOBAL_CHANGES and of GLOBAL_CLAIM. */
enum { CLASS, NAME, VALUE, IS_TAKEN };
enum { NUMBER, PLACE, DATABASE, CLAIM };

struct claims {
    struct arena *arena;
    size_t count;
    struct bytes *classes, *names, *values;
    bool *are_taken;
    int64_t number; /* of the claim; 0: nothing was claimed */
    const char *refused;
    size_t refused_place;
};

enum fault claims_collect(struct arena *arena, struct pg *pg, struct claims **claims_r)
{
    struct pg_params params;
    struct pg_result *rows;
    pg_params_start(&params, arena);
    *claims_r = NULL;
    enum fault fault = pg_run(pg, &statements[STATEMENT_GLOBAL_CHANGES], &params, &rows);
    if (fault || !pg_rows(rows))
        return fault;
    size_t count = (size_t)pg_rows(rows);
    struct claims *claims = ARENA_NEW(arena, struct claims);
    *claims = (struct claims){.arena = arena,
                              .count = count,
                              .classes = ARENA_ARRAY(arena, struct bytes, count),
                              .names = ARENA_ARRAY(arena, struct bytes, count),
                              .values = ARENA_ARRAY(arena, struct bytes, count),
                              .are_taken = ARENA_ARRAY(arena, bool, count)};
    for (size_t i = 0; i < count; i++) {
        claims->classes[i] = pg_get_text(rows, (int)i, CLASS);
        claims->names[i] = pg_get_text(rows, (int)i, NAME);
        claims->values[i] = pg_get_text(rows, (int)i, VALUE);
        claims->are_taken[i] = pg_get_bool(rows, (int)i, IS_TAKEN);
    }
    *claims_r = claims;
    return FAULT_NONE;
}

/* A statement in the session of a database, whose answer `rows_r` may be NULL. */
static enum fault run(const struct claim_sessions *sessions, struct bytes database, enum statement statement,
                      const struct pg_params *params, struct pg_result **rows_r)
{
    struct pg *pg;
    enum fault fault = sessions->use(sessions->whose, database, &pg);
    if (fault)
        return fault;
    fault = pg_run(pg, &statements[statement], params, rows_r);
    if (fault && sessions->failed)
        sessions->failed(sessions->whose, database);
    return fault;
}

/* --- whom z names -------------------------------------------------------------------------------- */

static enum fault drop(struct claims *claims, const struct claim_sessions *sessions, const size_t *places,
                       size_t count, struct bytes database, int64_t claim)
{
    struct bytes *classes = ARENA_ARRAY(claims->arena, struct bytes, count);
    struct bytes *names = ARENA_ARRAY(claims->arena, struct bytes, count);
    struct bytes *values = ARENA_ARRAY(claims->arena, struct bytes, count);
    for (size_t i = 0; i < count; i++) {
        classes[i] = claims->classes[places[i]];
        names[i] = claims->names[places[i]];
        values[i] = claims->values[places[i]];
    }
    struct pg_params params;
    pg_params_start(&params, claims->arena);
    pg_add_text_array(&params, classes, count);
    pg_add_text_array(&params, names, count);
    pg_add_text_array(&params, values, count);
    pg_add_text(&params, database);
    pg_add_i64(&params, claim);
    return run(sessions, sessions->z, STATEMENT_GLOBAL_DROP, &params, NULL);
}

/* Has a document of the database the value?  FAULT_STALE: it may change at this moment. */
static enum fault look(const struct claims *claims, const struct claim_sessions *sessions, size_t place,
                       struct bytes database, bool *is_held_r)
{
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, claims->arena);
    pg_add_text(&params, claims->classes[place]);
    pg_add_text(&params, claims->names[place]);
    pg_add_text(&params, claims->values[place]);
    pg_add_i64(&params, clock_present_minute());
    enum fault fault = run(sessions, database, STATEMENT_GLOBAL_LOOK, &params, &row);
    if (fault)
        return fault;
    struct bytes word = pg_get_text(row, 0, 0);
    *is_held_r = bytes_equal(word, BYTES("held"));
    return bytes_equal(word, BYTES("busy")) ? FAULT_STALE : FAULT_NONE;
}

static enum fault refuse(struct claims *claims, size_t place, struct bytes database)
{
    claims->refused = arena_printf(claims->arena, "%.*s %.*s %.*s, in %.*s", (int)claims->classes[place].size,
                                   claims->classes[place].data, (int)claims->names[place].size,
                                   claims->names[place].data, (int)claims->values[place].size,
                                   claims->values[place].data, (int)database.size, database.data);
    claims->refused_place = place;
    return FAULT_AUNIQUE;
}

/* Another database has claimed the value: the claim goes, or ours is refused. */
static enum fault settle_one(struct claims *claims, const struct claim_sessions *sessions, size_t place,
                             struct bytes database, int64_t claim)
{
    bool is_held = true;
    enum fault fault = look(claims, sessions, place, database, &is_held);
    if (fault == FAULT_ODATABASE) { /* stampd.forget_database() is for who knows that it is gone for good */
        log_warning("a unique value is claimed for a database that is not usable database=%.*s",
                    (int)database.size, database.data);
        return refuse(claims, place, database);
    }
    if (fault)
        return fault;
    return is_held ? refuse(claims, place, database) : drop(claims, sessions, &place, 1, database, claim);
}

/* --- claiming ------------------------------------------------------------------------------------ */

static enum fault claim_once(struct claims *claims, const struct claim_sessions *sessions, bool *is_done_r)
{
    struct pg_params params;
    struct pg_result *rows;
    pg_params_start(&params, claims->arena);
    pg_add_text_array(&params, claims->classes, claims->count);
    pg_add_text_array(&params, claims->names, claims->count);
    pg_add_text_array(&params, claims->values, claims->count);
    pg_add_text(&params, sessions->database);
    *is_done_r = true;
    enum fault fault = run(sessions, sessions->z, STATEMENT_GLOBAL_CLAIM, &params, &rows);
    for (int row = 0; !fault && row < pg_rows(rows); row++) {
        claims->number = pg_get_i64(rows, row, NUMBER);
        if (pg_is_null(rows, row, PLACE))
            continue;
        size_t place = (size_t)pg_get_i64(rows, row, PLACE) - 1;
        assert(place < claims->count);
        if (!claims->are_taken[place])
            continue; /* given up, whoever has it */
        *is_done_r = false;
        fault = settle_one(claims, sessions, place, pg_get_text(rows, row, DATABASE),
                           pg_get_i64(rows, row, CLAIM));
    }
    return fault;
}

enum fault claims_take(struct claims *claims, const struct claim_sessions *sessions)
{
    for (int try = 0; try < TRIES; try++) {
        bool is_done;
        enum fault fault = claim_once(claims, sessions, &is_done);
        if (fault || is_done)
            return fault;
    }
    return FAULT_STALE;
}

/* --- afterwards ---------------------------------------------------------------------------------- */

void claims_settle(struct claims *claims, const struct claim_sessions *sessions, enum claims_end end)
{
    size_t *places = ARENA_ARRAY(claims->arena, size_t, claims->count), count = 0;
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < claims->count && claims->number && !fault; i++) {
        bool is_held = claims->are_taken[i];
        if (end == CLAIMS_UNDONE)
            fault = look(claims, sessions, i, sessions->database, &is_held);
        if (!fault && !is_held)
            places[count++] = i;
    }
    if (count)
        fault = drop(claims, sessions, places, count, sessions->database, claims->number);
    if (fault)
        log_info("claims of unique values are left behind code=%s", fault_code(fault));
}

void claims_refused_property(const struct claims *claims, struct bytes *class_r, struct bytes *name_r)
{
    *class_r = claims->refused ? claims->classes[claims->refused_place] : NO_BYTES;
    *name_r = claims->refused ? claims->names[claims->refused_place] : NO_BYTES;
}

const char *claims_refused(const struct claims *claims)
{
    return claims->refused;
}
