/* ns_database: what is done outside the databases of namespaces. */
#include "control/ns/ns_database.h"

#include <string.h>

#include "control/message.h"

bool ns_database_open(struct control *control, struct pg **pg_r)
{
    enum fault fault = control_connect(control, "postgres", pg_r);
    if (fault == FAULT_ODATABASE)
        fault = control_connect(control, "template1", pg_r);
    if (fault == FAULT_ODATABASE)
        message_print("neither postgres nor template1 is a database here");
    return fault == FAULT_NONE;
}

bool ns_database_open_alone(struct control *control, struct pg **pg_r)
{
    /* a session lock; the workers use the keys of two integers */
    return ns_database_open(control, pg_r) &&
           control_execute(*pg_r, "waiting for another stampctl",
                           "select pg_advisory_lock(hashtextextended('stampctl', 0))");
}

bool ns_database_execute(struct pg *pg, const char *before, const char *database, const char *after)
{
    struct builder sql = {0};
    builder_add_bytes(&sql, bytes_of(before));
    pg_add_identifier(&sql, bytes_of(database));
    builder_add_bytes(&sql, bytes_of(after));
    builder_add(&sql, "", 1);
    bool is_done = control_execute(pg, database, sql.data);
    builder_free(&sql);
    return is_done;
}

static bool exists(struct control *control, struct pg *pg, const char *sql, const char *name, bool *exists_r)
{
    struct pg_params params;
    struct pg_result *result;
    pg_params_start(&params, control->arena);
    pg_params_add_text(&params, bytes_of(name));
    if (!control_query(control, pg, name, sql, &params, &result))
        return false;
    *exists_r = pg_get_bool(result, 0, 0);
    return true;
}

bool ns_database_exists(struct control *control, struct pg *pg, const char *database, bool *exists_r)
{
    return exists(control, pg, "select exists (select from pg_database where datname = $1::text)", database,
                  exists_r);
}

bool ns_database_has_role(struct control *control, struct pg *pg, const char *role, bool *exists_r)
{
    return exists(control, pg, "select exists (select from pg_roles where rolname = $1::text)", role,
                  exists_r);
}
