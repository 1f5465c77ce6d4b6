/* keeper_databases: read from the configurations in z. */
#include "serve/upkeep/keeper_databases.h"

#include <string.h>

#include "base/clock.h"
#include "model/namespace.h"
#include "store/proof.h"

enum { OLD_MS = 1000 };

static const struct pg_statement namespaces = {
    "namespaces",
    "select content, id = 'z', id from stampd.item where class = 'Namespace' and iclass = 'Conf' and key = ''"
    " and not raw and content is not null order by id <> 'z'",
    0};

enum fault keeper_databases_open(const struct settings *settings, const char *database, struct pg **pg_r)
{
    const struct pg_options options = {
        .conninfo = settings_conninfo(settings, database),
        .database = database,
        .name = "stampd keeper",
        .role_settings = "",
        .connect_timeout_s = (int)settings->connect_timeout_s,
        .statement_timeout_ms = settings->statement_timeout_ms,
        .lock_timeout_ms = settings->lock_timeout_ms,
    };
    enum fault fault = pg_open(&options, pg_r);
    if (fault)
        return fault;
    struct arena *arena = arena_create("proof");
    fault = proof_begin(*pg_r, arena, settings->connect_timeout_s * 1000, NULL);
    arena_destroy(arena);
    if (fault)
        pg_close(*pg_r);
    return fault;
}

/* NULL: the configuration is invalid, or what clients see of the namespace must not change. */
static const char *read_database(struct arena *arena, struct bytes content)
{
    const struct ns_conf conf = namespace_read(arena, content);
    return conf.state == NS_ON && conf.database.size
               ? arena_copy(arena, conf.database.data, conf.database.size)
               : NULL;
}

const struct keeper_database *keeper_databases_list(const struct settings *settings, struct arena *arena,
                                                    size_t *count_r)
{
    struct pg *pg;
    struct pg_result *rows = NULL;
    const struct keeper_database z = {settings->z_database, BYTES("z")};
    struct keeper_database *databases = ARENA_NEW(arena, struct keeper_database);
    databases[0] = z;
    *count_r = 1;
    if (keeper_databases_open(settings, settings->z_database, &pg))
        return databases;
    bool is_read = !pg_prepare(pg, &namespaces, 1) && !pg_run(pg, &namespaces, PG_NO_PARAMS(arena), &rows);
    pg_close(pg);
    if (!is_read)
        return databases;
    databases = ARENA_ARRAY(arena, struct keeper_database, (size_t)pg_rows(rows) + 1);
    databases[0] = z;
    bool is_on = true; /* as far as z decides, whose row comes first */
    for (int row = 0; row < pg_rows(rows) && is_on; row++) {
        const char *database = read_database(arena, pg_get_text(rows, row, 0));
        if (pg_get_bool(rows, row, 1))
            is_on = namespace_read(arena, pg_get_text(rows, row, 0)).state == NS_ON;
        if (database && strcmp(database, settings->z_database) != 0)
            databases[(*count_r)++] = (struct keeper_database){database, pg_get_text(rows, row, 2)};
    }
    return databases;
}

bool keeper_databases_has(const struct settings *settings, struct arena *arena, const char *database,
                          int64_t listed_ms)
{
    size_t count;
    if (clock_monotonic_ms() - listed_ms < OLD_MS)
        return true;
    const struct keeper_database *databases = keeper_databases_list(settings, arena, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(databases[i].name, database) == 0)
            return true;
    return false;
}
