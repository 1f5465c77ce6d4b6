/* schema_claims: sessions with the databases that are asked, and transactions that claim. */
#include "control/schema_claims.h"

#include <string.h>

#include "document/claims.h"
#include "document/statements.h"

struct session {
    struct bytes database;
    struct pg *pg;
    struct session *next;
};

struct claiming {
    struct control *control;
    struct pg *pg;
    struct session *others;
    struct claim_sessions sessions;
    struct schema_refusal refusal;
};

static enum fault prepare(struct pg *pg)
{
    const struct pg_statement needed[] = {
        statements[STATEMENT_GLOBAL_CHANGES],
        statements[STATEMENT_GLOBAL_CLAIM],
        statements[STATEMENT_GLOBAL_DROP],
        statements[STATEMENT_GLOBAL_LOOK],
    };
    return pg_prepare(pg, needed, COUNT_OF(needed));
}

/* One for each database, kept until the end; never the one whose transaction goes on. */
static enum fault use(void *whose, struct bytes database, struct pg **pg_r)
{
    struct claiming *claiming = whose;
    struct arena *arena = claiming->control->arena;
    for (struct session *one = claiming->others; one; one = one->next)
        if (bytes_equal(one->database, database)) {
            *pg_r = one->pg;
            return FAULT_NONE;
        }
    const char *name = arena_copy(arena, database.data, database.size);
    enum fault fault = control_connect(claiming->control, name, pg_r);
    if (!fault)
        fault = prepare(*pg_r);
    if (fault)
        return fault;
    struct session *session = ARENA_NEW(arena, struct session);
    *session = (struct session){bytes_of(name), *pg_r, claiming->others};
    claiming->others = session;
    return FAULT_NONE;
}

bool claiming_open(struct control *control, struct pg *pg, struct claiming **claiming_r)
{
    struct pg_result *row;
    if (!control_query(control, pg, "reading the name of the database", "select current_database()::text",
                       NULL, &row))
        return false;
    if (prepare(pg)) {
        say("preparing claims: %s", pg_message(pg));
        return false;
    }
    struct claiming *claiming = ARENA_NEW(control->arena, struct claiming);
    *claiming = (struct claiming){.control = control, .pg = pg};
    claiming->sessions = (struct claim_sessions){.use = use,
                                                 .whose = claiming,
                                                 .z = bytes_of(control->settings.z_database),
                                                 .database = pg_get_text(row, 0, 0)};
    *claiming_r = claiming;
    return true;
}

const struct schema_refusal *claiming_refusal(const struct claiming *claiming)
{
    return &claiming->refusal;
}

static struct bytes keep(struct arena *arena, struct bytes text)
{
    return (struct bytes){arena_copy(arena, text.data, text.size), text.size};
}

static void note_refusal(struct claiming *claiming, const struct claims *claims, const char *words)
{
    struct arena *arena = claiming->control->arena;
    struct bytes class, name;
    claims_refused_property(claims, &class, &name);
    claiming->refusal = (struct schema_refusal){
        .property = keep(arena, name), .class = keep(arena, class), .value = keep(arena, bytes_of(words))};
}

enum fault claiming_run(struct claiming *claiming, const struct pg_statement *statement,
                        const struct pg_params *params, struct pg_result **row_r, const char **problem_r)
{
    struct arena *arena = params->arena;
    struct claims *claims = NULL;
    enum fault fault = pg_execute(claiming->pg, "begin; " CLAIMS_BEGIN);
    if (!fault)
        fault = pg_run(claiming->pg, statement, params, row_r);
    if (!fault)
        fault = claims_collect(arena, claiming->pg, &claims);
    if (!fault && claims)
        fault = claims_take(claims, &claiming->sessions);
    if (!fault)
        fault = pg_execute(claiming->pg, "commit");
    if (!fault) {
        if (claims)
            claims_settle(claims, &claiming->sessions, CLAIMS_COMMITTED);
        return FAULT_NONE;
    }
    struct arena *lasting = claiming->control->arena; /* the other one is that of this step */
    const char *refused = claims ? claims_refused(claims) : NULL;
    *problem_r = refused ? arena_printf(lasting, "a document of another namespace has %s", refused)
                         : arena_copy(lasting, pg_message(claiming->pg), strlen(pg_message(claiming->pg)));
    if (refused)
        note_refusal(claiming, claims, refused);
    else if (strcmp(pg_sqlstate(claiming->pg), "ST005") == 0 &&
             schema_read_refusal(lasting, pg_detail(claiming->pg), &claiming->refusal))
        fault = FAULT_AUNIQUE;
    /* What was claimed stays so.  Nothing can be let go now: while documents are looked at for the first time
     * any of them may have the value.  Whoever wants it finds out later that there is nothing behind it. */
    return pg_execute(claiming->pg, "rollback") ? FAULT_XAWAY : fault;
}
