/* keeper_private: what the parts of the keeper share. */
#ifndef STAMPD_SERVE_KEEPER_PRIVATE_H
#define STAMPD_SERVE_KEEPER_PRIVATE_H

#include "base/arena.h"
#include "base/settings.h"
#include "edge/pg.h"

/* A session of its own, in which changes are those of no worker. */
MUST_USE enum fault keeper_open(const struct settings *settings, const char *database, struct pg **pg_r);

/* The databases of all namespaces that are not off, that of z first; of z alone when it cannot be asked. */
const char *const *keeper_databases(const struct settings *settings, struct arena *arena, size_t *count_r);

#endif
