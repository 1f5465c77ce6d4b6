/* store_claims: the end of a commit that takes or gives up values which are unique in all namespaces. */
#include "document/store.h"

#include "base/crash.h"
#include "document/claims.h"
#include "document/store_private.h"

static bool is_claiming(const struct schema *schema, struct bytes name)
{
    const struct schema_class *class = schema_find_class(schema, name);
    for (size_t i = 0; class && i < class->unique_count; i++)
        if (class->uniques[i].is_global)
            return true;
    return false;
}

/* Copies have keys, and properties are of singletons: they change none. */
bool store_has_claims(const struct schema *schema, const struct commit *commit)
{
    for (size_t i = 0; schema->has_global && i < commit->count; i++)
        if (commit->documents[i].act != DRAFT_READ &&
            is_claiming(schema, commit->documents[i].base->header.class))
            return true;
    return false;
}

enum fault store_begin_claims(struct store_session *session)
{
    session->is_held = true;
    enum fault fault = pg_execute(session->pg, "begin; " CLAIMS_BEGIN);
    session->is_held = !fault;
    return fault;
}

static enum fault use(void *whose, struct bytes database, struct pg **pg_r)
{
    struct store *store = whose;
    int space = stamps_space(store->stamps, database);
    *pg_r = NULL;
    if (space < 0)
        return FAULT_BINTERNAL;
    /* The one of the commit stays what it is: its transaction ended with it. */
    enum fault fault = store->sessions[space].is_held ? FAULT_NONE : store_connect(store, space);
    return fault ? fault : store_use(store, space, pg_r);
}

static void failed(void *whose, struct bytes database)
{
    struct store *store = whose;
    int space = stamps_space(store->stamps, database);
    const struct store_session *session = &store->sessions[space];
    if (!session->is_held && session->pg && !pg_is_usable(session->pg))
        store_close(store, space);
}

/* Nothing was committed. */
static void undo(struct store_session *session, struct pg_verdict *verdict, enum fault fault)
{
    verdict->outcome = PG_REFUSED;
    verdict->fault = fault;
    verdict->sqlstate[0] = '\0';
    (void)!pg_execute(session->pg, "rollback"); /* or the connection is lost, which undoes it too */
}

/* The end itself: whether it happened is not known when no answer comes. */
static void commit_now(struct store_session *session, struct pg_verdict *verdict)
{
    enum fault fault = pg_execute(session->pg, "commit");
    if (!fault)
        return;
    verdict->outcome = pg_is_usable(session->pg) ? PG_REFUSED : PG_UNKNOWN;
    verdict->fault = fault;
    verdict->sqlstate[0] = '\0';
}

void store_end_claims(struct store *store, int space, struct arena *arena, struct pg_verdict *verdict,
                      struct commit *commit)
{
    struct store_session *session = &store->sessions[space];
    const struct claim_sessions sessions = {
        .use = use,
        .failed = failed,
        .whose = store,
        .z = bytes_of(store->settings->z_database),
        .database = bytes_of(stamps_space_database(store->stamps, space)),
    };
    struct claims *claims = NULL;
    assert(session->is_held);
    if (verdict->outcome == PG_COMMITTED) { /* until here: no statement has failed */
        enum fault fault = claims_collect(arena, session->pg, &claims);
        crash_at(CRASH_CLAIMS_COLLECTED);
        if (!fault && claims)
            fault = claims_take(claims, &sessions);
        crash_at(CRASH_CLAIMS_TAKEN);
        if (fault == FAULT_AUNIQUE)
            claims_refused_property(claims, &commit->refused[1], &commit->refused[0]);
        if (fault)
            undo(session, verdict, fault);
        else
            commit_now(session, verdict);
        crash_at(CRASH_CLAIMS_COMMITTED);
    } else if (verdict->outcome == PG_REFUSED) {
        (void)!pg_execute(session->pg, "rollback");
    }
    if (claims && verdict->outcome != PG_UNKNOWN)
        claims_settle(claims, &sessions, verdict->outcome == PG_COMMITTED ? CLAIMS_COMMITTED : CLAIMS_UNDONE);
    session->is_held = false; /* not before: sessions that are opened on the way take the place of others */
}
