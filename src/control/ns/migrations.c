/* migrations: finds, orders and applies the files, each in one transaction with its row in `migration`. */
#include "control/ns/migrations.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/message.h"

int migrations_number(const char *name)
{
    int number = 0;
    for (int i = 0; i < 4; i++) {
        if (name[i] < '0' || name[i] > '9')
            return 0;
        number = 10 * number + (name[i] - '0');
    }
    size_t size = strlen(name);
    return name[4] == '_' && size > 9 && strcmp(name + size - 4, ".sql") == 0 ? number : 0;
}

int migrations_line(struct bytes text, int64_t position)
{
    int line = 1;
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if ((byte & 0xC0) != 0x80 && --position <= 0) /* the first byte of a character */
            break;
        line += byte == '\n';
    }
    return line;
}

static int order_by_number(const void *a, const void *b)
{
    const struct migration *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

static bool is_gapless(const char *folder, const struct migration *migrations, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (migrations[i].number == (int)i + 1)
            continue;
        return message_refuse("%s: %s: expected number %04zu here", folder, migrations[i].name, i + 1);
    }
    if (!count)
        message_print("%s: no file NNNN_name.sql", folder);
    return count > 0;
}

/* All files of the package, by number, from 1 without gaps; on failure reports why. */
static bool migrations_list(struct control *control, struct migration **migrations_r, size_t *count_r)
{
    enum { MIGRATIONS_MAX = 1000 };
    const char *folder = control_directory(control->arena, "STAMPD_SQL", "sql", STAMPD_SQL_DIRECTORY);
    DIR *directory = opendir(folder);
    if (!directory)
        return message_refuse("%s: %s", folder, strerror(errno));
    struct migration *migrations = ARENA_ARRAY(control->arena, struct migration, MIGRATIONS_MAX);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) && count < MIGRATIONS_MAX;) {
        int number = migrations_number(entry->d_name);
        if (number)
            migrations[count++] =
                (struct migration){number, arena_copy(control->arena, entry->d_name, strlen(entry->d_name)),
                                   arena_printf(control->arena, "%s/%s", folder, entry->d_name)};
    }
    closedir(directory);
    qsort(migrations, count, sizeof *migrations, order_by_number);
    *migrations_r = migrations;
    *count_r = count;
    return is_gapless(folder, migrations, count);
}

bool migrations_applied(struct control *control, struct pg *pg, int *number_r)
{
    struct pg_result *result;
    if (!control_query(control, pg, "looking for the schema",
                       "select to_regclass('stampd.migration') is not null", NULL, &result))
        return false;
    *number_r = 0;
    if (!pg_get_bool(result, 0, 0))
        return true;
    if (!control_query(control, pg, "reading the schema's number", "select max(number) from stampd.migration",
                       NULL, &result))
        return false;
    *number_r = (int)pg_get_i64(result, 0, 0);
    return true;
}

/* A database with other contents must not be changed. */
static bool migrations_is_free(struct control *control, struct pg *pg, const char *database)
{
    struct pg_result *result;
    if (!control_query(control, pg, "looking for other tables",
                       "select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = "
                       "c.relnamespace "
                       "where c.relkind in ('r', 'p') and n.nspname <> 'information_schema' and n.nspname !~ "
                       "'^pg_' limit 1",
                       NULL, &result))
        return false;
    if (!pg_rows(result))
        return true;
    struct bytes name = pg_get_text(result, 0, 0);
    return message_refuse("%s is not an empty database: it has the table %.*s", database, (int)name.size,
                          name.data);
}

static bool migrations_record(struct control *control, struct pg *pg, const struct migration *migration)
{
    struct pg_result *result;
    const struct pg_params *params =
        PG_PARAMS(control->arena, PG_I32(migration->number), PG_TEXT(bytes_of(migration->name)));
    return control_query(
        control, pg, migration->name,
        "insert into stampd.migration (number, name, applied) values ($1::int, $2::text, now()) "
        "on conflict (number) do nothing",
        params, &result);
}

static bool run_file(struct pg *pg, const char *path, struct bytes text)
{
    if (text.size != strlen(text.data))
        return message_refuse("%s: the file contains a NUL byte", path);
    if (pg_execute(pg, text.data) == FAULT_NONE)
        return true;
    int64_t position = pg_position(pg);
    if (position > 0)
        message_print("%s:%d: %s", path, migrations_line(text, position), pg_message(pg));
    else
        message_print("%s: %s", path, pg_message(pg));
    return false;
}

static bool apply_one(struct control *control, struct pg *pg, const struct migration *migration)
{
    struct bytes text;
    if (!control_read_file(control->arena, migration->path, &text) || !control_execute(pg, "begin", "begin"))
        return false;
    if (run_file(pg, migration->path, text) && migrations_record(control, pg, migration) &&
        control_execute(pg, migration->name, "commit"))
        return true;
    if (pg_execute(pg, "rollback") != FAULT_NONE)
        message_print("%s: the connection is lost; the file was rolled back", migration->path);
    return false;
}

static bool apply_missing(struct control *control, struct pg *pg, const char *database,
                          const struct migration *migrations, size_t count)
{
    int number;
    if (!migrations_applied(control, pg, &number) || (!number && !migrations_is_free(control, pg, database)))
        return false;
    if (number > (int)count)
        return message_refuse("%s has schema %d, which is newer than this release of stampctl (%zu)",
                              database, number, count);
    for (size_t i = (size_t)number; i < count; i++) {
        if (!apply_one(control, pg, &migrations[i]))
            return false;
        printf("%s: applied %s\n", database, migrations[i].name);
    }
    return true;
}

bool migrations_apply(struct control *control, struct pg *pg, const char *database)
{
    struct migration *migrations;
    size_t count;
    /* A session lock: it ends with the connection in any case.  The workers use the keys of two integers. */
    return migrations_list(control, &migrations, &count) &&
           control_execute(pg, "waiting for another stampctl",
                           "select pg_advisory_lock(hashtextextended('stampd migration', 0))") &&
           apply_missing(control, pg, database, migrations, count) &&
           control_execute(pg, "unlock",
                           "select pg_advisory_unlock(hashtextextended('stampd migration', 0))");
}
