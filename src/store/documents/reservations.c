/* reservations: statements in z, and in the databases named by z. */
#include "store/documents/reservations.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/proof.h"
#include "store/statements.h"

/* How often a reservation is retried after a conflicting one was dropped. */
enum { TRIES = 4, PROOF_MS = 10000 };

/* Columns of GLOBAL_CHANGES and of GLOBAL_RESERVE. */
enum { CLASS, NAME, VALUE, ID };
enum { NUMBER, PLACE, DATABASE, CLAIM };

struct reservations {
    struct arena *arena;
    size_t count;
    struct bytes *classes, *names, *values;
    struct bytes *ids; /* of the documents that take the values; NO_BYTES: given up */
    int64_t number;    /* of the reservation; 0: nothing was reserved */
    const char *refused;
    size_t refused_place;
};

enum fault reservations_collect(struct arena *arena, struct pg *pg, struct reservations **reservations_r)
{
    struct pg_params params;
    struct pg_result *rows;
    pg_params_start(&params, arena);
    *reservations_r = NULL;
    enum fault fault = pg_run(pg, &statements[STATEMENT_GLOBAL_CHANGES], &params, &rows);
    if (fault || !pg_rows(rows))
        return fault;
    size_t count = (size_t)pg_rows(rows);
    struct reservations *reservations = ARENA_NEW(arena, struct reservations);
    *reservations = (struct reservations){.arena = arena,
                                          .count = count,
                                          .classes = ARENA_ARRAY(arena, struct bytes, count),
                                          .names = ARENA_ARRAY(arena, struct bytes, count),
                                          .values = ARENA_ARRAY(arena, struct bytes, count),
                                          .ids = ARENA_ARRAY(arena, struct bytes, count)};
    for (size_t i = 0; i < count; i++) {
        reservations->classes[i] = pg_get_text(rows, (int)i, CLASS);
        reservations->names[i] = pg_get_text(rows, (int)i, NAME);
        reservations->values[i] = pg_get_text(rows, (int)i, VALUE);
        reservations->ids[i] = pg_is_null(rows, (int)i, ID) ? NO_BYTES : pg_get_text(rows, (int)i, ID);
    }
    *reservations_r = reservations;
    return FAULT_NONE;
}

/* Runs a statement in the session of a database; `rows_r` may be NULL. */
static enum fault reservations_run(const struct reservation_sessions *sessions, struct bytes database,
                                   enum statement statement, const struct pg_params *params,
                                   struct pg_result **rows_r)
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

/* --- other holders ------------------------------------------------------------------------------- */

static enum fault reservations_drop(struct reservations *reservations,
                                    const struct reservation_sessions *sessions, const size_t *places,
                                    size_t count, struct bytes database, int64_t claim)
{
    struct bytes *classes = ARENA_ARRAY(reservations->arena, struct bytes, count);
    struct bytes *names = ARENA_ARRAY(reservations->arena, struct bytes, count);
    struct bytes *values = ARENA_ARRAY(reservations->arena, struct bytes, count);
    for (size_t i = 0; i < count; i++) {
        classes[i] = reservations->classes[places[i]];
        names[i] = reservations->names[places[i]];
        values[i] = reservations->values[places[i]];
    }
    return reservations_run(sessions, sessions->z, STATEMENT_GLOBAL_DROP,
                            PG_PARAMS(reservations->arena, PG_TEXTS(classes, count), PG_TEXTS(names, count),
                                      PG_TEXTS(values, count), PG_TEXT(database), PG_I64(claim)),
                            NULL);
}

/* Whether a document of the database has the value.  FAULT_STALE: it may be changing at this moment. */
static enum fault observation(const struct reservations *reservations,
                              const struct reservation_sessions *sessions, size_t place,
                              struct bytes database, bool *is_held_r)
{
    struct pg_result *row;
    const struct pg_params *params = PG_PARAMS(
        reservations->arena, PG_TEXT(reservations->classes[place]), PG_TEXT(reservations->names[place]),
        PG_TEXT(reservations->values[place]), PG_I64(clock_present_minute()));
    enum fault fault = reservations_run(sessions, database, STATEMENT_GLOBAL_STATE, params, &row);
    if (fault)
        return fault;
    struct bytes word = pg_get_text(row, 0, 0);
    *is_held_r = bytes_equal(word, BYTES("held"));
    return bytes_equal(word, BYTES("busy")) ? FAULT_STALE : FAULT_NONE;
}

static enum fault reservations_refuse(struct reservations *reservations, size_t place, struct bytes database)
{
    reservations->refused =
        arena_printf(reservations->arena, "%.*s %.*s %.*s, in %.*s", (int)reservations->classes[place].size,
                     reservations->classes[place].data, (int)reservations->names[place].size,
                     reservations->names[place].data, (int)reservations->values[place].size,
                     reservations->values[place].data, (int)database.size, database.data);
    reservations->refused_place = place;
    return FAULT_AUNIQUE;
}

/* Another database has reserved the value: drops its reservation, or refuses ours. */
static enum fault settle_one(struct reservations *reservations, const struct reservation_sessions *sessions,
                             size_t place, struct bytes database, int64_t claim)
{
    bool is_held = true;
    enum fault fault = observation(reservations, sessions, place, database, &is_held);
    if (fault == FAULT_ODATABASE) { /* if it is gone for good, run stampd.release_database() */
        log_warning("a unique value is reserved for a database that is not usable database=%.*s",
                    (int)database.size, database.data);
        return reservations_refuse(reservations, place, database);
    }
    return FAULT_FIRST(fault, is_held
                                  ? reservations_refuse(reservations, place, database)
                                  : reservations_drop(reservations, sessions, &place, 1, database, claim));
}

/* --- reserving ----------------------------------------------------------------------------------- */

static bool is_in_a_cell(struct bytes database)
{
    return memchr(database.data, '@', database.size);
}

/* The reservation does not wait for its own commit: the one that follows it on the same server does.  That of
 * a namespace in another cell follows on another server. */
static enum fault make_durable(const struct reservations *reservations,
                               const struct reservation_sessions *sessions)
{
    struct pg *pg;
    if (!is_in_a_cell(sessions->database))
        return FAULT_NONE;
    return FAULT_FIRST(sessions->use(sessions->whose, sessions->z, &pg),
                       proof_run(pg, reservations->arena, PROOF_MS));
}

static enum fault claim_once(struct reservations *reservations, const struct reservation_sessions *sessions,
                             bool *is_done_r)
{
    struct pg_result *rows;
    struct pg_params *params =
        PG_PARAMS(reservations->arena, PG_TEXTS(reservations->classes, reservations->count),
                  PG_TEXTS(reservations->names, reservations->count),
                  PG_TEXTS(reservations->values, reservations->count), PG_TEXT(sessions->database));
    *is_done_r = true;
    enum fault fault = reservations_run(sessions, sessions->z, STATEMENT_GLOBAL_RESERVE, params, &rows);
    if (!fault)
        fault = make_durable(reservations, sessions);
    for (int row = 0; !fault && row < pg_rows(rows); row++) {
        reservations->number = pg_get_i64(rows, row, NUMBER);
        if (pg_is_null(rows, row, PLACE))
            continue;
        size_t place = (size_t)pg_get_i64(rows, row, PLACE) - 1;
        assert(place < reservations->count);
        if (!reservations->ids[place].data)
            continue; /* given up, no matter which database has it */
        *is_done_r = false;
        fault = settle_one(reservations, sessions, place, pg_get_text(rows, row, DATABASE),
                           pg_get_i64(rows, row, CLAIM));
    }
    return fault;
}

enum fault reservations_take(struct reservations *reservations, const struct reservation_sessions *sessions)
{
    for (int try = 0; try < TRIES; try++) {
        bool is_done;
        enum fault fault = claim_once(reservations, sessions, &is_done);
        if (fault || is_done)
            return fault;
    }
    return FAULT_STALE;
}

/* --- settling ------------------------------------------------------------------------------------ */

void reservations_settle(struct reservations *reservations, const struct reservation_sessions *sessions,
                         enum reservations_end end)
{
    size_t *places = ARENA_ARRAY(reservations->arena, size_t, reservations->count), count = 0;
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < reservations->count && reservations->number && !fault; i++) {
        bool is_held = reservations->ids[i].data != NULL;
        if (end == RESERVATIONS_UNDONE)
            fault = observation(reservations, sessions, i, sessions->database, &is_held);
        if (!fault && !is_held)
            places[count++] = i;
    }
    if (count)
        fault = reservations_drop(reservations, sessions, places, count, sessions->database,
                                  reservations->number);
    if (fault)
        log_info("reservations of unique values are left behind code=%s", fault_code(fault));
}

void reservations_refused_parts(const struct reservations *reservations, struct bytes parts_r[3])
{
    if (!reservations->refused)
        return;
    parts_r[0] = reservations->names[reservations->refused_place];
    parts_r[1] = reservations->classes[reservations->refused_place];
    parts_r[2] = reservations->ids[reservations->refused_place];
}

const char *reservations_refused(const struct reservations *reservations)
{
    return reservations->refused;
}
