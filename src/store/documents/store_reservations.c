/* store_reservations: the end of a commit that takes or gives up values that are unique in all namespaces. */
#include "store/documents/store_reservations.h"

#include "base/crash.h"
#include "segment/namespaces.h"
#include "store/documents/reservations.h"
#include "store/store_private.h"
#include "edge/pg/pg_pipeline.h"

static bool is_claiming(const struct schema *schema, struct bytes name)
{
    const struct schema_class *class = schema_find_class(schema, name);
    for (size_t i = 0; class && i < class->unique_count; i++)
        if (class->uniques[i].is_global)
            return true;
    return false;
}

/* Copies have keys, and properties belong to singletons: copies change no property. */
bool store_reservations_has(const struct schema *schema, const struct commit *commit)
{
    for (size_t i = 0; schema->has_global && i < commit->count; i++)
        if (commit->documents[i].act != DRAFT_READ &&
            is_claiming(schema, commit->documents[i].base->header.class))
            return true;
    return false;
}

enum fault store_reservations_begin(struct store *store, int ns)
{
    store_set_held(store, ns, true);
    enum fault fault = pg_execute(store_pg(store, ns), "begin; " RESERVATIONS_BEGIN);
    store_set_held(store, ns, !fault);
    return fault;
}

static enum fault use(void *whose, struct bytes database, struct pg **pg_r)
{
    struct store *store = whose;
    int ns = namespaces_find(store_segment(store), database);
    *pg_r = NULL;
    if (ns < 0)
        return FAULT_BINTERNAL;
    /* The session of the commit is never reopened: its transaction would have ended with it. */
    enum fault fault = store_is_held(store, ns) ? FAULT_NONE : store_connect(store, ns);
    return fault ? fault : store_use(store, ns, pg_r);
}

static void failed(void *whose, struct bytes database)
{
    struct store *store = whose;
    int ns = namespaces_find(store_segment(store), database);
    const struct pg *pg = store_pg(store, ns);
    if (!store_is_held(store, ns) && pg && !pg_is_usable(pg))
        store_close(store, ns);
}

/* Nothing was committed. */
static void undo(struct pg *pg, struct pg_verdict *verdict, enum fault fault)
{
    verdict->outcome = PG_REFUSED;
    verdict->fault = fault;
    verdict->sqlstate[0] = '\0';
    (void)!pg_execute(pg, "rollback"); /* or the connection is lost, which also rolls back */
}

/* The commit itself: its outcome is unknown if no answer arrives. */
static void commit_now(struct pg *pg, struct pg_verdict *verdict)
{
    enum fault fault = pg_execute(pg, "commit");
    if (!fault)
        return;
    verdict->outcome = pg_is_usable(pg) ? PG_REFUSED : PG_UNKNOWN;
    verdict->fault = fault;
    verdict->sqlstate[0] = '\0';
}

void store_reservations_end(struct store *store, int ns, struct arena *arena, struct pg_verdict *verdict,
                            struct commit *commit)
{
    struct pg *pg = store_pg(store, ns);
    const struct reservation_sessions sessions = {
        .use = use,
        .failed = failed,
        .whose = store,
        .z = bytes_of(store_settings(store)->z_database),
        .database = bytes_of(namespaces_database(store_segment(store), ns)),
    };
    struct reservations *reservations = NULL;
    assert(store_is_held(store, ns));
    if (verdict->outcome == PG_COMMITTED) { /* so far: no statement has failed */
        enum fault fault = reservations_collect(arena, pg, &reservations);
        crash_at(CRASH_RESERVATIONS_COLLECTED);
        if (!fault && reservations)
            fault = reservations_take(reservations, &sessions);
        crash_at(CRASH_RESERVATIONS_TAKEN);
        if (fault == FAULT_AUNIQUE)
            reservations_refused_parts(reservations, commit->refused);
        if (fault)
            undo(pg, verdict, fault);
        else
            commit_now(pg, verdict);
        crash_at(CRASH_RESERVATIONS_COMMITTED);
    } else if (verdict->outcome == PG_REFUSED) {
        (void)!pg_execute(pg, "rollback");
    }
    if (reservations && verdict->outcome != PG_UNKNOWN)
        reservations_settle(reservations, &sessions,
                            verdict->outcome == PG_COMMITTED ? RESERVATIONS_COMMITTED : RESERVATIONS_UNDONE);
    store_set_held(store, ns, false); /* not before: sessions opened meanwhile replace others */
}
