/* namespace: the code of a namespace, and its configuration, the item Conf of Namespace/<code> in z. */
#ifndef STAMPD_CONTROL_NAMESPACE_H
#define STAMPD_CONTROL_NAMESPACE_H

#include "base/arena.h"
#include "base/bytes.h"

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
/* "\\" before a code that nginx would read as a parameter of its map, else "". */
const char *namespace_escape(const char *code);

#endif
