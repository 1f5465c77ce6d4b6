/* pg_conninfo: connection strings of libpq: words, or a URI. */
#ifndef STAMPD_EDGE_PG_PG_CONNINFO_H
#define STAMPD_EDGE_PG_PG_CONNINFO_H

#include "base/arena.h"

/* The value of a keyword in a connection string; NULL: not set, or not a connection string. */
const char *pg_conninfo_value(struct arena *arena, const char *conninfo, const char *keyword);
/* The connection string without some keywords (NULL ends them); NULL: not a connection string. */
const char *pg_conninfo_without(struct arena *arena, const char *conninfo, const char *const *keywords);

#endif
