/* keeper_databases: read from the configurations in z. */
#include "serve/keeper_databases.h"

#include "edge/json.h"

static const struct pg_statement namespaces = {
    "namespaces",
    "select content from stampd.item where class = 'Namespace' and iclass = 'Conf' and key = '' and not raw"
    " and content is not null",
    0};

enum fault keeper_databases_open(const struct settings *settings, const char *database, struct pg **pg_r)
{
    const struct pg_options options = {
        .conninfo = settings->database,
        .database = database,
        .role_settings = "-c application_name=stampd_keeper",
        .connect_timeout_s = (int)settings->connect_timeout_s,
        .statement_timeout_ms = settings->statement_timeout_ms,
        .lock_timeout_ms = settings->lock_timeout_ms,
    };
    return pg_open(&options, pg_r);
}

/* NULL: the configuration is invalid, or the namespace is closed. */
static const char *read_database(struct arena *arena, struct bytes content)
{
    static const struct json_limits limits = {.depth = 32, .tree_depth = 1};
    struct json *conf;
    struct json_problem problem;
    if (json_read(arena, content, &limits, &conf, &problem) || conf->kind != JSON_OBJECT)
        return NULL;
    const struct json *database = json_member(conf, "database"), *off = json_member(conf, "off");
    return database && database->kind == JSON_STRING && !off
               ? arena_copy(arena, database->value.data, database->value.size)
               : NULL;
}

const char *const *keeper_databases_list(const struct settings *settings, struct arena *arena,
                                         size_t *count_r)
{
    struct pg *pg;
    struct pg_params none;
    struct pg_result *rows = NULL;
    const char **databases = ARENA_NEW(arena, const char *);
    databases[0] = settings->z_database;
    *count_r = 1;
    if (keeper_databases_open(settings, settings->z_database, &pg))
        return databases;
    pg_params_start(&none, arena);
    bool is_read = !pg_prepare(pg, &namespaces, 1) && !pg_run(pg, &namespaces, &none, &rows);
    pg_close(pg);
    if (!is_read)
        return databases;
    databases = ARENA_ARRAY(arena, const char *, (size_t)pg_rows(rows) + 1);
    databases[0] = settings->z_database;
    for (int row = 0; row < pg_rows(rows); row++) {
        const char *database = read_database(arena, pg_get_text(rows, row, 0));
        if (database && strcmp(database, settings->z_database) != 0)
            databases[(*count_r)++] = database;
    }
    return databases;
}
