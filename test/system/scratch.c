/* scratch: what a program that tests on a real PostgreSQL has of its own. */
#include "scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/segment_open.h"

#define MUST(condition, ...)                                                                                 \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, __VA_ARGS__);                                                                    \
            fputc('\n', stderr);                                                                             \
            exit(2);                                                                                         \
        }                                                                                                    \
    } while (0)

static struct pg *connect_to(const char *conninfo, const char *database)
{
    struct pg_options options = {
        .conninfo = conninfo,
        .database = database,
        .role_settings = "",
        .connect_timeout_s = 5,
        .statement_timeout_ms = 60000,
        .lock_timeout_ms = 30000,
    };
    struct pg *pg;
    MUST(!pg_open(&options, &pg), "no connection with database %s", database);
    return pg;
}

void scratch_run(struct pg *pg, const char *sql)
{
    MUST(!pg_execute(pg, sql), "%s\nin: %.200s", pg_message(pg), sql);
}

int64_t scratch_number(struct pg *pg, const char *sql)
{
    const struct pg_statement statement = {.name = "", .sql = sql, .parameters = 0};
    struct arena *arena = arena_create("scratch");
    struct pg_params params;
    struct pg_result *result;
    pg_params_start(&params, arena);
    MUST(!pg_prepare(pg, &statement, 1) && !pg_run(pg, &statement, &params, &result), "%s\nin: %.200s",
         pg_message(pg), sql);
    int64_t number = pg_rows(result) ? pg_get_i64(result, 0, 0) : 0;
    arena_destroy(arena);
    return number;
}

struct pg *scratch_connect(const struct scratch *scratch)
{
    return connect_to(scratch->conninfo, scratch->database);
}

/* As stampctl does: each file once, in order, in one transaction with its row of the migration table. */
static void apply(struct scratch *scratch, const char *path, const char *name)
{
    FILE *file = fopen(path, "r");
    MUST(file, "%s cannot be read", path);
    struct builder sql = {0};
    builder_add_text(&sql, "begin;\n");
    size_t size;
    do {
        size = fread(builder_reserve(&sql, 4096), 1, 4096, file);
        sql.size += size;
    } while (size);
    fclose(file);
    builder_printf(&sql, "\n;insert into stampd.migration (number, name) values (%d, '%s'); commit",
                   atoi(name), name);
    builder_add(&sql, "", 1);
    scratch_run(scratch->admin, sql.data);
    builder_free(&sql);
}

static int is_migration(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && strcmp(end, ".sql") == 0 && atoi(entry->d_name) > 0;
}

static void migrate(struct scratch *scratch)
{
    struct dirent **entries;
    int count = scandir(STAMPD_TEST_SQL, &entries, is_migration, alphasort);
    MUST(count > 0, "no migrations in %s", STAMPD_TEST_SQL);
    for (int i = 0; i < count; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", STAMPD_TEST_SQL, entries[i]->d_name);
        apply(scratch, path, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

static void make_database(struct scratch *scratch)
{
    char sql[256];
    struct pg *pg = connect_to(scratch->conninfo, "postgres");
    snprintf(sql, sizeof sql, "drop database if exists \"%s\" with (force)", scratch->database);
    scratch_run(pg, sql);
    snprintf(sql, sizeof sql, "create database \"%s\" template template0 encoding 'UTF8'", scratch->database);
    scratch_run(pg, sql);
    pg_close(pg);
    scratch->admin = scratch_connect(scratch);
    scratch_run(scratch->admin, "set client_min_messages = warning");
    migrate(scratch);
}

static void make_segment(struct scratch *scratch, int processes)
{
    char path[128], problem[256];
    snprintf(path, sizeof path, "%s/segment", scratch->folder);
    MUST(segment_open(&scratch->segment, path, 1024, 0, problem, sizeof problem), "%s", problem);
    assert(processes <= SCRATCH_PROCESSES);
    MUST(processes_take(scratch->segment, 1, 1, processes, scratch->indexes) == processes,
         "no entries in the segment");
    scratch->ns = namespaces_find(scratch->segment, bytes_of(scratch->database));
    MUST(scratch->ns >= 0, "no space in the segment");
}

static void make_settings(struct scratch *scratch)
{
    char path[128], problem[256];
    snprintf(path, sizeof path, "%s/stampd.conf", scratch->folder);
    FILE *file = fopen(path, "w");
    MUST(file, "%s cannot be written", path);
    fprintf(file, "database = %s user=stampd\n",
            scratch->conninfo); /* the workers' role: its rights suffice */
    MUST(fclose(file) == 0, "%s cannot be written", path);
    MUST(settings_load(&scratch->settings, path, problem, sizeof problem), "%s", problem);
}

void scratch_open(struct scratch *scratch, const char *database, int processes)
{
    *scratch = (struct scratch){.conninfo = getenv("STAMPD_TEST_CONNINFO")};
    MUST(scratch->conninfo,
         "STAMPD_TEST_CONNINFO is not set: a superuser's connection string without dbname");
    MUST(strlen(database) < sizeof scratch->database && !strchr(database, '"'), "not a name: %s", database);
    strcpy(scratch->database, database);
    snprintf(scratch->folder, sizeof scratch->folder, "/tmp/stampd-scratch-XXXXXX");
    MUST(mkdtemp(scratch->folder), "no folder in /tmp");
    make_settings(scratch);
    make_database(scratch);
    make_segment(scratch, processes);
}

void scratch_close(struct scratch *scratch)
{
    pg_close(scratch->admin);
    struct pg *pg = connect_to(scratch->conninfo, "postgres");
    char text[256];
    snprintf(text, sizeof text, "drop database if exists \"%s\" with (force)", scratch->database);
    scratch_run(pg, text);
    pg_close(pg);
    segment_close(scratch->segment);
    settings_free(&scratch->settings);
    static const char *const files[] = {"segment", "stampd.conf"};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        snprintf(text, sizeof text, "%s/%s", scratch->folder, files[i]);
        unlink(text);
    }
    rmdir(scratch->folder);
}
