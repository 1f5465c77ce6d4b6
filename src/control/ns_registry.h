/* ns_registry: the configuration documents of all namespaces, Namespace/<code> in the database of z, and
 * nginx's map of them. */
#ifndef STAMPD_CONTROL_NS_REGISTRY_H
#define STAMPD_CONTROL_NS_REGISTRY_H

#include "base/bytes.h"
#include "control/control.h"

struct namespace_conf {
    const char *code;
    const char *database; /* "": the text is malformed and has none */
    const char *access;   /* closed, read, open */
    const char *off;      /* message for callers; "" when the namespace is not closed for maintenance */
    struct bytes text;    /* the whole JSON; NO_BYTES: there is no document */
    bool is_malformed;    /* the text is not a configuration: what could be read of it is above */
};

/* Is it a code: ^[a-z][a-z0-9]{0,15}$ ?  Reserved ones included. */
bool namespace_is_code(const char *code);
/* Is the code reserved for the server (ping live ready metrics console doc qm…)? */
bool namespace_is_reserved(const char *code);
/* Can it name a database without quotes in nginx's files: ^[A-Za-z_][A-Za-z0-9_-]{0,62}$ ? */
bool namespace_is_database(const char *name);
bool namespace_is_access(const char *word);
/* Is it "*", or an origin as browsers send it: scheme://host or scheme://host:port, in lower case? */
bool namespace_is_origin(const char *text);

/* Parses one configuration; false when the text is not a JSON object with the expected members. */
MUST_USE bool namespace_read_conf(struct arena *arena, const char *code, struct bytes text,
                                  struct namespace_conf *conf_r);
/* The JSON object `text` (NO_BYTES: {}) with the text member `name` set to `value`, or removed when NULL. All
 * other members stay as they were written. */
struct bytes namespace_set_member(struct arena *arena, struct bytes text, const char *name,
                                  const char *value);
/* The same with a member of any kind, given as JSON; removed when NO_BYTES. */
struct bytes namespace_set_json(struct arena *arena, struct bytes text, const char *name, struct bytes value);

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

/* --- nginx's map --- */
struct map_options {
    const char *path; /* NULL: namespaces.map beside the settings */
    const char
        *nginx_pid; /* file with nginx's process id, signalled to read its files again; NULL: no signal */
};
/* The map's text: one line `code database;` each.  Leaves out the code `but` (NULL: leaves out none). */
struct bytes map_compose(struct arena *arena, const struct namespace_conf *confs, size_t count,
                         const char *but);
/* "\\" before a code that nginx would read as a parameter of its map, else "". */
const char *map_escape(const char *code);
/* The path of the map. */
const char *map_path(struct control *control, const struct map_options *options);
/* Writes the map and, beside it, the homes (homes.h), unless both are up to date, and notifies nginx: through
 * the file with its process id, or with the command of setting nginx_reload when something was written.  On
 * failure reports why. */
MUST_USE bool map_write(struct control *control, const struct map_options *options,
                        const struct namespace_conf *confs, size_t count, const char *but);

#endif
