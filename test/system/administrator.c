/* administrator: SQL of a superuser in tests, databases made and dropped, backends that are stopped. */
#include "administrator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/statements.h"

struct pg *connect_admin(const char *name)
{
    struct pg_options options = {.conninfo = getenv("STAMPD_TEST_CONNINFO"),
                                 .database = name,
                                 .role_settings = "-c search_path=stampd,public",
                                 .connect_timeout_s = 5,
                                 .statement_timeout_ms = 30000,
                                 .lock_timeout_ms = 5000};
    struct pg *pg;
    assert_int_equal(pg_open(&options, &pg), FAULT_NONE);
    return pg;
}

void tell(struct pg *pg, const char *format, ...)
{
    char sql[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    if (pg_execute(pg, sql) != FAULT_NONE)
        fail_msg("%s: %s", sql, pg_message(pg));
}

/* The one number that a query gives. */
int64_t ask(struct pg *pg, const char *format, ...)
{
    static int count;
    char sql[1000], name[16];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    snprintf(name, sizeof name, "ask%d", ++count);
    struct pg_statement statement = {name, sql, 0};
    struct arena *arena = arena_create("ask");
    struct pg_params params;
    struct pg_result *result;
    pg_params_start(&params, arena);
    if (pg_prepare(pg, &statement, 1) || pg_run(pg, &statement, &params, &result))
        fail_msg("%s: %s", sql, pg_message(pg));
    int64_t number = pg_get_i64(result, 0, 0);
    arena_destroy(arena);
    return number;
}

bool lives(struct pg *pg, int backend)
{
    return ask(pg, "select count(*) from pg_stat_activity where pid = %d", backend) > 0;
}

void make_database(const char *name)
{
    struct pg *pg = connect_admin("postgres");
    tell(pg, "drop database if exists %s with (force)", name);
    tell(pg, "create database %s template template0 encoding 'UTF8'", name);
    pg_close(pg);
}

void drop_database(const char *name)
{
    struct pg *pg = connect_admin("postgres");
    tell(pg, "drop database if exists %s with (force)", name);
    pg_close(pg);
}

/* The schema as the migrations in sql/ make it. */
void migrate(struct pg *pg)
{
    for (int number = 1; number <= SCHEMA_NUMBER; number++) {
        char command[1000];
        struct builder sql = {0};
        snprintf(command, sizeof command, "cat '%s'/%04d_*.sql", STAMPD_TEST_SQL, number);
        FILE *file = popen(command, "r");
        assert_non_null(file);
        for (size_t size = 1; size;) {
            size = fread(builder_reserve(&sql, 65536), 1, 65536, file);
            sql.size += size;
        }
        assert_int_equal(pclose(file), 0);
        builder_add(&sql, "", 1);
        if (pg_execute(pg, sql.data) != FAULT_NONE)
            fail_msg("migration %d: %s", number, pg_message(pg));
        builder_free(&sql);
        tell(pg, "insert into stampd.migration (number, name) values (%d, 'test') on conflict do nothing",
             number);
    }
}

void wake_backends(struct pg *pg)
{
    for (int64_t backend = 0;;) {
        backend = ask(pg,
                      "select coalesce(min(pid), 0) from pg_stat_activity where datname = current_database()"
                      " and pid > %lld",
                      (long long)backend);
        if (backend == 0)
            return;
        kill((pid_t)backend, SIGCONT); /* it may have ended since */
    }
}
