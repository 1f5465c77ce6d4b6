/* backup_rows: pages of the tables, a namespace after the other, z first. */
#include "control/backup/backup_rows.h"

#include <string.h>

#include "base/coding/hex.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/ns/ns_registry.h"

enum { PAGE = 2000 };
enum { ROW_DIGEST, ROW_SIZE, ROW_STORE, ROW_OBJECT, ROW_HEADER };

struct rows_walk {
    struct control *control;
    int64_t before;
    bool (*visit)(void *context, const struct backup_row *row);
    void *context;
};

bool backup_rows_now(struct control *control, int64_t *stamp_r)
{
    struct pg *z;
    struct pg_result *row;
    if (!ns_registry_open(control, &z) ||
        !control_query(control, z, "z", "select stampd.stamp_of(now() - interval '10 minutes')", NULL, &row))
        return false;
    *stamp_r = pg_get_i64(row, 0, 0);
    return true;
}

bool backup_rows_check(struct control *control, const struct backup_row *row, bool *is_there_r)
{
    struct control own = *control;
    struct pg_params params;
    struct pg_result *found;
    own.arena = row->arena;
    pg_params_start(&params, row->arena);
    pg_params_add_text(&params, bytes_of(row->sha));
    if (!control_query(&own, row->pg, row->code,
                       "select exists (select from stampd.blob b where b.digest = decode($1, 'hex')"
                       " and not b.removing)",
                       &params, &found))
        return false;
    *is_there_r = pg_get_bool(found, 0, 0);
    return true;
}

/* --- one namespace --- */

/* The files after `last`, "" at first. */
static bool backup_rows_read_page(const struct rows_walk *walk, const struct backup_row *row,
                                  const char *last, struct pg_result **rows_r)
{
    struct control own = *walk->control;
    struct pg_params params;
    own.arena = row->arena;
    pg_params_start(&params, row->arena);
    pg_params_add_text(&params, bytes_of(last));
    pg_params_add_i64(&params, PAGE);
    pg_params_add_i64(&params, walk->before);
    return control_query(
        &own, row->pg, row->code,
        "select encode(b.digest, 'hex'), b.size, b.store, b.object, encode(b.head, 'hex') from stampd.blob b"
        " where b.digest > decode($1, 'hex') and b.touched < $3 and not b.removing"
        " order by b.digest limit $2",
        &params, rows_r);
}

static const char *backup_rows_text_of(const struct backup_row *row, struct bytes text)
{
    return text.data ? arena_copy(row->arena, text.data, text.size) : NULL;
}

static bool backup_rows_take_row(struct backup_row *row, const struct pg_result *rows, int number)
{
    struct bytes header = pg_get_text(rows, number, ROW_HEADER);
    if (!blob_store_read_digest(pg_get_text(rows, number, ROW_DIGEST), &row->digest))
        return false;
    blob_store_write_digest(&row->digest, row->sha);
    row->size = pg_get_i64(rows, number, ROW_SIZE);
    row->store = backup_rows_text_of(row, pg_get_text(rows, number, ROW_STORE));
    row->object = backup_rows_text_of(row, pg_get_text(rows, number, ROW_OBJECT));
    memset(row->header, 0, sizeof row->header);
    for (size_t i = 0; header.size == 2 * sizeof row->header && i < sizeof row->header; i++)
        row->header[i] = (unsigned char)hex_byte(header.data + 2 * i);
    return true;
}

static bool visit_pages(const struct rows_walk *walk, struct backup_row *row)
{
    struct pg_result *rows = NULL;
    char last[BLOB_HEX + 1] = "";
    bool is_fine = true;
    for (int count = PAGE; is_fine && count == PAGE;) {
        arena_reset(row->arena);
        is_fine = backup_rows_read_page(walk, row, last, &rows);
        count = is_fine ? pg_rows(rows) : 0;
        for (int number = 0; number < count && is_fine; number++)
            is_fine = backup_rows_take_row(row, rows, number) && walk->visit(walk->context, row);
        memcpy(last, row->sha, sizeof last);
    }
    return is_fine;
}

/* `own` has an arena for the namespace. */
static bool visit_files(const void *context, struct control *own, const char *code, const char *database)
{
    const struct rows_walk *walk = context;
    struct data_keys *keys;
    struct backup_row row = {.code = code, .database = database};
    enum fault fault = control_connect(own, database, &row.pg);
    if (fault == FAULT_ODATABASE)
        message_print("%s: the database %s does not exist", code, database);
    if (fault || !ns_keys_read(own, row.pg, &keys))
        return false;
    row.keys = data_keys_of_files(keys);
    row.arena = arena_create("backup rows");
    row.files = stored_files_open(own, database);
    bool is_done = visit_pages(walk, &row);
    stored_files_close(row.files);
    arena_destroy(row.arena);
    return is_done;
}

/* A namespace whose database is missing has no files. */
static bool refuse_stored(const void *context UNUSED, struct control *own, const char *code,
                          const char *database)
{
    struct pg *pg;
    struct pg_result *row;
    enum fault fault = control_connect(own, database, &pg);
    if (fault == FAULT_ODATABASE)
        return true;
    if (fault || !control_query(own, pg, code,
                                "select b.store from stampd.blob b where b.store is not null"
                                " and not b.removing limit 1",
                                NULL, &row))
        return false;
    if (!pg_rows(row))
        return true;
    struct bytes store = pg_get_text(row, 0, 0);
    message_print("%s: the object store %.*s has files, and the setting object_stores_file is empty", code,
                  (int)store.size, store.data);
    return false;
}

/* --- all namespaces --- */

typedef bool visit_namespace(const void *context, struct control *own, const char *code,
                             const char *database);

static bool visit_one(const struct control *control, visit_namespace *visit, const void *context,
                      const char *code, const char *database)
{
    struct control own = *control;
    own.arena = arena_create("backup namespace");
    bool is_done = visit(context, &own, code, database);
    arena_destroy(own.arena);
    return is_done;
}

static bool visit_all(struct control *control, visit_namespace *visit, const void *context)
{
    struct namespace_conf *confs;
    size_t count;
    struct pg *z;
    if (!ns_registry_open(control, &z) || !ns_registry_read(control, z, &confs, &count) ||
        !visit_one(control, visit, context, "z", control->settings.z_database))
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(confs[i].code, "z") != 0 &&
            !visit_one(control, visit, context, confs[i].code, confs[i].database))
            return false;
    return true;
}

bool backup_rows_walk(struct control *control, int64_t before,
                      bool (*visit)(void *context, const struct backup_row *row), void *context)
{
    const struct rows_walk walk = {control, before, visit, context};
    return visit_all(control, visit_files, &walk);
}

bool backup_rows_refuse_stored(struct control *control)
{
    return visit_all(control, refuse_stored, NULL);
}
