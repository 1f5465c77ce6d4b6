/* ns_database: the databases of the cluster and its roles, seen from one that belongs to no namespace. */
#ifndef STAMPD_CONTROL_NS_NS_DATABASE_H
#define STAMPD_CONTROL_NS_NS_DATABASE_H

#include "control/control.h"

/* Connects to a database that belongs to no namespace, to create and drop others; on failure reports why. */
MUST_USE bool ns_database_open(struct control *control, struct pg **pg_r);
/* The same, under a lock that excludes other such stampctl processes until the end of the program. */
MUST_USE bool ns_database_open_alone(struct control *control, struct pg **pg_r);
/* Runs `before` + the name, quoted as an identifier, + `after`; on failure reports why. */
MUST_USE bool ns_database_execute(struct pg *pg, const char *before, const char *name, const char *after);
/* On failure report why. */
MUST_USE bool ns_database_exists(struct control *control, struct pg *pg, const char *database,
                                 bool *exists_r);
MUST_USE bool ns_database_has_role(struct control *control, struct pg *pg, const char *role, bool *exists_r);

#endif
