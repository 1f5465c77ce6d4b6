/* keeper_databases: the databases that the keeper works on, and its sessions. */
#ifndef STAMPD_SERVE_KEEPER_DATABASES_H
#define STAMPD_SERVE_KEEPER_DATABASES_H

#include "base/arena.h"
#include "base/settings.h"
#include "edge/pg.h"

/* Opens a session of the keeper's own; its changes count as made outside the workers. */
MUST_USE enum fault keeper_databases_open(const struct settings *settings, const char *database,
                                          struct pg **pg_r);

/* The databases of all namespaces that are not off, that of z first; only that of z if it cannot be
 * queried. */
const char *const *keeper_databases_list(const struct settings *settings, struct arena *arena,
                                         size_t *count_r);

#endif
