/* start_check: looks into the database of z for encrypted namespaces, and into theirs for their keys. */
#include "serve/start_check.h"

#include <stdio.h>

#include "edge/pg/pg.h"
#include "seal/site_key.h"
#include "model/namespace.h"
#include "store/data_keys.h"

static const struct pg_statement reading_namespaces = {
    "start_namespaces",
    "select id, content from stampd.item where class = 'Namespace' and iclass = 'Conf' and key = ''"
    " and content is not null and not raw",
    0};

static enum fault start_check_query(const struct settings *settings, struct arena *arena,
                                    const char *database, const struct pg_statement *statement,
                                    struct pg **pg_r, struct pg_result **rows_r)
{
    const struct pg_options options = {
        .conninfo = settings_conninfo(settings, database),
        .database = database,
        .role_settings = "",
        .connect_timeout_s = (int)settings->connect_timeout_s,
        .statement_timeout_ms = settings->statement_timeout_ms,
        .lock_timeout_ms = settings->lock_timeout_ms,
    };
    return FAULT_FIRST(pg_open(&options, pg_r), pg_prepare(*pg_r, statement, 1),
                       pg_run(*pg_r, statement, PG_NO_PARAMS(arena), rows_r));
}

static bool has_keys(const struct settings *settings, struct arena *arena, const char *database,
                     const char **why_r)
{
    struct pg *pg = NULL;
    struct pg_result *rows;
    struct data_keys keys = {0};
    bool has =
        start_check_query(settings, arena, database, data_keys_statement(), &pg, &rows) != FAULT_NONE ||
        (data_keys_take(&keys, rows, why_r) && keys.count);
    data_keys_free(&keys);
    pg_close(pg);
    return has;
}

bool start_check_keys(const struct settings *settings, char *problem, size_t problem_size)
{
    struct arena *arena = arena_create("start check");
    struct pg *z = NULL;
    struct pg_result *rows;
    bool is_good = site_key_check_shared(settings, problem, problem_size) &&
                   site_key_load(settings, problem, problem_size);
    int count = is_good && start_check_query(settings, arena, settings->z_database, &reading_namespaces, &z,
                                             &rows) == FAULT_NONE
                    ? pg_rows(rows)
                    : 0;
    for (int row = 0; row < count && is_good; row++) {
        const struct ns_conf conf = namespace_read(arena, pg_get_text(rows, row, 1));
        const char *why = "the namespace is encrypted, and its database has no data key",
                   *database = arena_copy(arena, conf.database.data, conf.database.size);
        if (!conf.is_encrypted || !conf.database.size)
            continue;
        is_good = has_keys(settings, arena, database, &why);
        if (!is_good)
            snprintf(problem, problem_size, "database=%s: %s", database, why);
    }
    pg_close(z);
    arena_destroy(arena);
    return is_good;
}
