/* schema_claims: sessions with the databases that are queried, and transactions that reserve values. */
#include "control/schema/schema_claims.h"

#include <string.h>

#include "control/message.h"
#include "store/refusal.h"
#include "store/documents/reservations.h"
#include "store/statements.h"

struct session {
    struct bytes database;
    struct pg *pg;
    struct session *next;
};

struct schema_claims {
    struct control *control;
    struct pg *pg;
    struct session *others;
    struct reservation_sessions sessions;
    struct schema_refusal refusal;
};

static enum fault schema_claims_prepare(struct pg *pg)
{
    const struct pg_statement needed[] = {
        statements[STATEMENT_GLOBAL_CHANGES],
        statements[STATEMENT_GLOBAL_RESERVE],
        statements[STATEMENT_GLOBAL_DROP],
        statements[STATEMENT_GLOBAL_STATE],
    };
    return pg_prepare(pg, needed, COUNT_OF(needed));
}

/* One for each database, kept until the end; never the one whose transaction is running. */
static enum fault use(void *whose, struct bytes database, struct pg **pg_r)
{
    struct schema_claims *reserving = whose;
    struct arena *arena = reserving->control->arena;
    for (struct session *one = reserving->others; one; one = one->next)
        if (bytes_equal(one->database, database)) {
            *pg_r = one->pg;
            return FAULT_NONE;
        }
    const char *name = arena_copy(arena, database.data, database.size);
    enum fault fault = control_connect(reserving->control, name, pg_r);
    if (!fault)
        fault = schema_claims_prepare(*pg_r);
    if (fault)
        return fault;
    struct session *session = ARENA_NEW(arena, struct session);
    *session = (struct session){bytes_of(name), *pg_r, reserving->others};
    reserving->others = session;
    return FAULT_NONE;
}

bool schema_claims_open(struct control *control, struct pg *pg, struct schema_claims **reserving_r)
{
    struct pg_result *row;
    if (!control_query(control, pg, "reading the name of the database", "select current_database()::text",
                       NULL, &row))
        return false;
    if (schema_claims_prepare(pg)) {
        message_print("preparing claims: %s", pg_message(pg));
        return false;
    }
    struct schema_claims *reserving = ARENA_NEW(control->arena, struct schema_claims);
    *reserving = (struct schema_claims){.control = control, .pg = pg};
    reserving->sessions = (struct reservation_sessions){.use = use,
                                                        .whose = reserving,
                                                        .z = bytes_of(control->settings.z_database),
                                                        .database = pg_get_text(row, 0, 0)};
    *reserving_r = reserving;
    return true;
}

const struct schema_refusal *schema_claims_refusal(const struct schema_claims *reserving)
{
    return &reserving->refusal;
}

static struct bytes schema_claims_keep(struct arena *arena, struct bytes text)
{
    return (struct bytes){arena_copy(arena, text.data, text.size), text.size};
}

static void note_refusal(struct schema_claims *reserving, const struct reservations *reservations,
                         const char *words)
{
    struct arena *arena = reserving->control->arena;
    struct bytes parts[3] = {{0}};
    reservations_refused_parts(reservations, parts);
    reserving->refusal = (struct schema_refusal){.property = schema_claims_keep(arena, parts[0]),
                                                 .class = schema_claims_keep(arena, parts[1]),
                                                 .value = schema_claims_keep(arena, bytes_of(words))};
}

enum fault schema_claims_run(struct schema_claims *reserving, const struct pg_statement *statement,
                             const struct pg_params *params, struct pg_result **row_r, const char **problem_r)
{
    struct arena *arena = params->arena;
    struct reservations *reservations = NULL;
    enum fault fault = pg_execute(reserving->pg, "begin; " RESERVATIONS_BEGIN);
    if (!fault)
        fault = pg_run(reserving->pg, statement, params, row_r);
    if (!fault)
        fault = reservations_collect(arena, reserving->pg, &reservations);
    if (!fault && reservations)
        fault = reservations_take(reservations, &reserving->sessions);
    if (!fault)
        fault = pg_execute(reserving->pg, "commit");
    if (!fault) {
        if (reservations)
            reservations_settle(reservations, &reserving->sessions, RESERVATIONS_COMMITTED);
        return FAULT_NONE;
    }
    struct arena *lasting = reserving->control->arena; /* the other one is that of this step */
    const char *refused = reservations ? reservations_refused(reservations) : NULL;
    *problem_r = refused ? arena_printf(lasting, "a document of another namespace has %s", refused)
                         : arena_copy(lasting, pg_message(reserving->pg), strlen(pg_message(reserving->pg)));
    if (refused)
        note_refusal(reserving, reservations, refused);
    else if (refusal_of(pg_sqlstate(reserving->pg)) == REFUSAL_UNIQUE &&
             schema_refusal_read(lasting, pg_detail(reserving->pg), &reserving->refusal))
        fault = FAULT_AUNIQUE;
    /* Reservations stay.  None can be released now: while documents are first scanned, any of them may have
     * the value.  A later transaction that wants the value finds that no document has it. */
    return pg_execute(reserving->pg, "rollback") ? FAULT_XAWAY : fault;
}
