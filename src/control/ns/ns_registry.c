/* ns_registry: configurations, which it reads from and writes to the database of z. */
#include "control/ns/ns_registry.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"

static const char *ns_registry_copy(struct arena *arena, struct bytes text)
{
    return text.size ? arena_copy(arena, text.data, text.size) : "";
}

bool ns_registry_parse(struct arena *arena, const char *code, struct bytes text,
                       struct namespace_conf *conf_r)
{
    const struct ns_conf conf = namespace_read(arena, text);
    bool is_malformed = conf.wrong || !conf.database.size;
    *conf_r = (struct namespace_conf){.code = code,
                                      .database = ns_registry_copy(arena, conf.database),
                                      .access = is_malformed ? "?" : namespace_access_word(conf.mode),
                                      .state = conf.state,
                                      .message = ns_registry_copy(arena, conf.message),
                                      .text = text,
                                      .is_malformed = is_malformed};
    return !is_malformed;
}

bool ns_registry_open(struct control *control, struct pg **z_r)
{
    switch (control_connect(control, control->settings.z_database, z_r)) {
    case FAULT_NONE:
        return true;
    case FAULT_ODATABASE:
        return message_refuse(
            "%s: the database of the namespace z does not exist; begin with: stampctl ns create z",
            control->settings.z_database);
    default:
        return false;
    }
}

bool ns_registry_read(struct control *control, struct pg *z, struct namespace_conf **confs_r, size_t *count_r)
{
    struct pg_result *result;
    if (!control_query(
            control, z, "reading the namespaces",
            "select id, content from stampd.item where class = 'Namespace' and iclass = 'Conf' and key = '' "
            "and content is not null order by id",
            NULL, &result))
        return false;
    size_t count = (size_t)pg_rows(result), kept = 0;
    struct namespace_conf *confs = ARENA_ARRAY(control->arena, struct namespace_conf, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct bytes id = pg_get_text(result, (int)i, 0), text = pg_get_text(result, (int)i, 1);
        const char *code = arena_copy(control->arena, id.data, id.size);
        if (!namespace_is_code(code)) {
            message_print("document Namespace/%s in %s: this is no code of a namespace; it is left out", code,
                          control->settings.z_database);
            continue;
        }
        if (!ns_registry_parse(control->arena, code, text, &confs[kept]))
            message_print(
                "document Namespace/%s in %s: item Conf is no configuration of a namespace; `stampctl ns "
                "create %s` "
                "mends it",
                code, control->settings.z_database, code);
        kept++;
    }
    *confs_r = confs;
    *count_r = kept;
    return true;
}

const struct namespace_conf *ns_registry_find(const struct namespace_conf *confs, size_t count,
                                              const char *code)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(confs[i].code, code) == 0)
            return &confs[i];
    return NULL;
}

const struct namespace_conf *ns_registry_require(const struct namespace_conf *confs, size_t count,
                                                 const char *code)
{
    const struct namespace_conf *conf = ns_registry_find(confs, count, code);
    if (!conf)
        message_print("%s: there is no such namespace", code);
    return conf;
}

/* Nobody is served there. */
static const struct namespace_conf *place_conf(struct control *control, const struct namespace_conf *conf)
{
    struct namespace_conf *placed = ARENA_NEW(control->arena, struct namespace_conf);
    *placed = *conf;
    placed->database = control->place;
    placed->state = NS_OFF;
    return placed;
}

bool ns_registry_connect(struct control *control, const char *code, struct ns_target *target_r)
{
    struct namespace_conf *confs;
    size_t count;
    if (!ns_registry_open(control, &target_r->z) || !ns_registry_read(control, target_r->z, &confs, &count))
        return false;
    target_r->conf = ns_registry_require(confs, count, code);
    if (!target_r->conf)
        return false;
    if (control->place)
        target_r->conf = place_conf(control, target_r->conf);
    enum fault fault = control_connect(control, target_r->conf->database, &target_r->pg);
    if (fault == FAULT_ODATABASE)
        message_print("%s: the database %s does not exist", code, target_r->conf->database);
    return fault == FAULT_NONE;
}

bool ns_registry_store(struct control *control, struct pg *z, const char *code, struct bytes text)
{
    struct pg_result *result;
    char *what = arena_printf(control->arena, "the document Namespace/%s", code);
    struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(bytes_of(code)));
    if (!text.data)
        return control_query(control, z, what, "select stampd.delete_document('Namespace', $1::text)", params,
                             &result);
    pg_params_add_text(params, text);
    return control_query(control, z, what,
                         "select stampd.put_item('Namespace', $1::text, 'Conf', '', $2::text)", params,
                         &result);
}

bool ns_registry_check_code(const char *command, const char *code)
{
    if (!namespace_is_code(code))
        message_print("%s: %s: a code is 1 to 16 of a-z and 0-9, a letter first", command, code);
    else if (namespace_is_reserved(code))
        message_print("%s: %s: the code is reserved", command, code);
    else
        return true;
    return false;
}

/* --- ns database --- */

bool ns_database_open_cell(struct control *control, const char *cell, struct pg **pg_r)
{
    const char *at = *cell ? "@" : "";
    enum fault fault = control_connect(control, arena_printf(control->arena, "postgres%s%s", at, cell), pg_r);
    if (fault == FAULT_ODATABASE)
        fault = control_connect(control, arena_printf(control->arena, "template1%s%s", at, cell), pg_r);
    if (fault == FAULT_ODATABASE)
        message_print("neither postgres nor template1 is a database here");
    return fault == FAULT_NONE;
}

bool ns_database_open(struct control *control, struct pg **pg_r)
{
    return ns_database_open_cell(control, "", pg_r);
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
    struct pg_result *result;
    if (!control_query(control, pg, name, sql, PG_PARAMS(control->arena, PG_TEXT(bytes_of(name))), &result))
        return false;
    *exists_r = pg_get_bool(result, 0, 0);
    return true;
}

bool ns_database_exists(struct control *control, struct pg *pg, const char *database, bool *exists_r)
{
    return exists(control, pg, "select exists (select from pg_database where datname = $1::text)",
                  control_database_name(control->arena, database), exists_r);
}

bool ns_database_has_role(struct control *control, struct pg *pg, const char *role, bool *exists_r)
{
    return exists(control, pg, "select exists (select from pg_roles where rolname = $1::text)", role,
                  exists_r);
}
