/* store_reservations: the end of a commit that takes or gives up values that are unique in all namespaces. */
#include "store/store.h"

#include "base/crash.h"
#include "segment/namespaces.h"
#include "store/reservations.h"
#include "store/store_commit.h"
#include "store/store_private.h"

static bool is_claiming(const struct schema *schema, struct bytes name)
{
    const struct schema_class *class = schema_find_class(schema, name);
    for (size_t i = 0; class && i < class->unique_count; i++)
        if (class->uniques[i].is_global)
            return true;
    return false;
}

/* Copies have keys, and properties belong to singletons: copies change no property. */
bool store_has_reservations(const struct schema *schema, const struct commit *commit)
{
    for (size_t i = 0; schema->has_global && i < commit->count; i++)
        if (commit->documents[i].act != DRAFT_READ &&
            is_claiming(schema, commit->documents[i].base->header.class))
            return true;
    return false;
}

enum fault store_begin_reservations(struct store_session *session)
{
    session->is_held = true;
    enum fault fault = pg_execute(session->pg, "begin; " RESERVATIONS_BEGIN);
    session->is_held = !fault;
    return fault;
}

static enum fault use(void *whose, struct bytes database, struct pg **pg_r)
{
    struct store *store = whose;
    int ns = namespaces_find(store->segment, database);
    *pg_r = NULL;
    if (ns < 0)
        return FAULT_BINTERNAL;
    /* The session of the commit is never reopened: its transaction would have ended with it. */
    enum fault fault = store->sessions[ns].is_held ? FAULT_NONE : store_connect(store, ns);
    return fault ? fault : store_use(store, ns, pg_r);
}

static void failed(void *whose, struct bytes database)
{
    struct store *store = whose;
    int ns = namespaces_find(store->segment, database);
    const struct store_session *session = &store->sessions[ns];
    if (!session->is_held && session->pg && !pg_is_usable(session->pg))
        store_close(store, ns);
}

/* Nothing was committed. */
static void undo(struct store_session *session, struct pg_verdict *verdict, enum fault fault)
{
    verdict->outcome = PG_REFUSED;
    verdict->fault = fault;
    verdict->sqlstate[0] = '\0';
    (void)!pg_execute(session->pg, "rollback"); /* or the connection is lost, which also rolls back */
}

/* The commit itself: its outcome is unknown if no answer arrives. */
static void commit_now(struct store_session *session, struct pg_verdict *verdict)
{
    enum fault fault = pg_execute(session->pg, "commit");
    if (!fault)
        return;
    verdict->outcome = pg_is_usable(session->pg) ? PG_REFUSED : PG_UNKNOWN;
    verdict->fault = fault;
    verdict->sqlstate[0] = '\0';
}

void store_end_reservations(struct store *store, int ns, struct arena *arena, struct pg_verdict *verdict,
                            struct commit *commit)
{
    struct store_session *session = &store->sessions[ns];
    const struct reservation_sessions sessions = {
        .use = use,
        .failed = failed,
        .whose = store,
        .z = bytes_of(store->settings->z_database),
        .database = bytes_of(namespaces_database(store->segment, ns)),
    };
    struct reservations *reservations = NULL;
    assert(session->is_held);
    if (verdict->outcome == PG_COMMITTED) { /* so far: no statement has failed */
        enum fault fault = reservations_collect(arena, session->pg, &reservations);
        crash_at(CRASH_RESERVATIONS_COLLECTED);
        if (!fault && reservations)
            fault = reservations_take(reservations, &sessions);
        crash_at(CRASH_RESERVATIONS_TAKEN);
        if (fault == FAULT_AUNIQUE)
            reservations_refused_parts(reservations, commit->refused);
        if (fault)
            undo(session, verdict, fault);
        else
            commit_now(session, verdict);
        crash_at(CRASH_RESERVATIONS_COMMITTED);
    } else if (verdict->outcome == PG_REFUSED) {
        (void)!pg_execute(session->pg, "rollback");
    }
    if (reservations && verdict->outcome != PG_UNKNOWN)
        reservations_settle(reservations, &sessions,
                            verdict->outcome == PG_COMMITTED ? RESERVATIONS_COMMITTED : RESERVATIONS_UNDONE);
    session->is_held = false; /* not before: sessions opened meanwhile replace others */
}
