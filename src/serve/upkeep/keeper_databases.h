/* keeper_databases: the databases that the keeper works on, and its sessions. */
#ifndef STAMPD_SERVE_UPKEEP_KEEPER_DATABASES_H
#define STAMPD_SERVE_UPKEEP_KEEPER_DATABASES_H

#include "base/arena.h"
#include "base/settings.h"
#include "edge/pg/pg.h"

/* Opens a session of the keeper's own; its changes count as made outside the workers.  What it sees is proven
 * (store/proof.h): files are removed for it, which no failover would bring back. */
MUST_USE enum fault keeper_databases_open(const struct settings *settings, const char *database,
                                          struct pg **pg_r);

struct keeper_database {
    const char *name;
    struct bytes code; /* of the namespace */
};
/* The databases of all namespaces whose effective state is 0 (on), that of z first; only that of z if it
 * cannot be queried.  What clients see of the others must not change. */
const struct keeper_database *keeper_databases_list(const struct settings *settings, struct arena *arena,
                                                    size_t *count_r);
/* Is the database, of a list that was made at this time (monotonic), still one of them?  Queried again if the
 * list is old. */
bool keeper_databases_has(const struct settings *settings, struct arena *arena, const char *database,
                          int64_t listed_ms);

#endif
