/* store_snapshot: transactions in which all reads are of one instant. */
#include "store/store.h"

#include "store/store_run.h"

static enum fault begin_snapshot(struct store *store, int ns, void *context UNUSED)
{
    return pg_execute(store_pg(store, ns), "begin isolation level repeatable read read only");
}

enum fault store_snapshot_begin(struct store *store, int ns)
{
    enum fault fault = store_run(store, ns, begin_snapshot, NULL);
    if (!fault)
        store_set_snapshot(store, ns, true);
    return fault;
}

void store_snapshot_end(struct store *store, int ns)
{
    if (!store_in_snapshot(store, ns))
        return;
    store_set_snapshot(store, ns, false);
    if (pg_execute(store_pg(store, ns), "rollback") || !pg_is_usable(store_pg(store, ns)))
        store_close(store, ns);
}
