/* ns_registry: the configuration documents of all namespaces, Namespace/<code> in the database of z. */
#ifndef STAMPD_CONTROL_NS_NS_REGISTRY_H
#define STAMPD_CONTROL_NS_NS_REGISTRY_H

#include "control/control.h"
#include "model/namespace.h"

struct namespace_conf {
    const char *code;
    const char *database; /* "": the text is malformed and has none */
    const char *access;   /* closed, read, open, rules; "?": the text is malformed */
    enum ns_state state;  /* its own; the effective one is the highest of this and that of z */
    const char *message;  /* for callers about the state; "": none */
    struct bytes text;    /* the whole JSON; NO_BYTES: there is no document */
    bool is_malformed;    /* the text is not a configuration: what could be read of it is above */
};

/* Parses one configuration; false when a member is malformed or the database is missing. */
MUST_USE bool ns_registry_parse(struct arena *arena, const char *code, struct bytes text,
                                struct namespace_conf *conf_r);
/* Is it valid as the code of a namespace?  Reports why not, as the command `command`. */
MUST_USE bool ns_registry_check_code(const char *command, const char *code);

/* All configurations, ordered by code; on failure reports why.  A malformed one is reported and marked, so
 * that the others do not wait for it. */
MUST_USE bool ns_registry_read(struct control *control, struct pg *z, struct namespace_conf **confs_r,
                               size_t *count_r);
const struct namespace_conf *ns_registry_find(const struct namespace_conf *confs, size_t count,
                                              const char *code);
/* The same; reports that there is no such namespace. */
const struct namespace_conf *ns_registry_require(const struct namespace_conf *confs, size_t count,
                                                 const char *code);
/* Stores the text as the configuration of `code`; NO_BYTES removes its document. */
MUST_USE bool ns_registry_store(struct control *control, struct pg *z, const char *code, struct bytes text);

/* Connects to the database of z; when there is none, reports what to do. */
MUST_USE bool ns_registry_open(struct control *control, struct pg **z_r);

/* A namespace that a command works on. */
struct ns_target {
    struct pg *z, *pg; /* databases, connected to as administrator */
    const struct namespace_conf *conf;
};
/* Finds the namespace and connects to its database; on failure reports why. */
MUST_USE bool ns_registry_connect(struct control *control, const char *code, struct ns_target *target_r);

/* --- ns database --- */

/* The databases of the cluster and its roles, seen from one that belongs to no namespace. */

/* Connects to a database that belongs to no namespace, to create and drop others; on failure reports why. */
MUST_USE bool ns_database_open(struct control *control, struct pg **pg_r);
/* The same in a cell. */
MUST_USE bool ns_database_open_cell(struct control *control, const char *cell, struct pg **pg_r);
/* The first, under a lock that excludes other such stampctl processes until the end of the program. */
MUST_USE bool ns_database_open_alone(struct control *control, struct pg **pg_r);
/* Runs `before` + the name, quoted as an identifier, + `after`; on failure reports why. */
MUST_USE bool ns_database_execute(struct pg *pg, const char *before, const char *name, const char *after);
/* On failure report why. */
MUST_USE bool ns_database_exists(struct control *control, struct pg *pg, const char *database,
                                 bool *exists_r);
MUST_USE bool ns_database_has_role(struct control *control, struct pg *pg, const char *role, bool *exists_r);

#endif
