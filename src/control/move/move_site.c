/* move_site: a database is frozen by default_transaction_read_only; tables are carried over by COPY. */
#include "control/move/move_site.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "control/message.h"
#include "control/ns/migrations.h"
#include "edge/pg/pg_copy.h"
#include "store/statements.h"

enum { PIECE_BYTES = 1 << 20, WAIT_PAUSE_MS = 20, WAIT_MOST_MS = 30000 };

/* --- checks --- */

static bool check_release(struct control *control, struct pg *pg, const char *where)
{
    int number;
    if (!migrations_applied(control, pg, &number))
        return false;
    if (number != SCHEMA_NUMBER)
        message_print("the namespace %s has schema %d, this stampctl needs %d: migrate it first", where,
                      number, SCHEMA_NUMBER);
    return number == SCHEMA_NUMBER;
}

static bool check_values(struct control *control, struct pg *pg)
{
    struct pg_result *row;
    if (!control_query(control, pg, "looking for unique values",
                       "select exists (select from stampd.unique_property where is_global)", NULL, &row))
        return false;
    if (pg_get_bool(row, 0, 0))
        message_print("the namespace has values that are unique in all namespaces: export and import it");
    return !pg_get_bool(row, 0, 0);
}

static bool try_lock(struct control *control, struct pg *pg, bool *is_held_r)
{
    struct pg_result *row;
    if (!control_query(control, pg, "excluding other moves",
                       "select pg_try_advisory_lock(hashtextextended('stampd move', 0))", NULL, &row))
        return false;
    *is_held_r = pg_get_bool(row, 0, 0);
    return true;
}

/* The second lock cannot be had in the database of the first. */
static bool move_site_lock(struct control *from, struct pg *source, struct control *to, struct pg *target)
{
    bool is_held;
    if (!try_lock(from, source, &is_held))
        return false;
    if (!is_held)
        return message_refuse("another move of this namespace is under way");
    if (!try_lock(to, target, &is_held))
        return false;
    if (!is_held)
        message_print("--to names the site where the namespace is, or another move to it is under way");
    return is_held;
}

bool move_site_check(struct control *from, const struct ns_target *source, struct control *to,
                     const struct ns_target *target)
{
    return check_release(from, source->pg, "here") && check_release(to, target->pg, "there") &&
           check_values(from, source->pg) && move_site_lock(from, source->pg, to, target->pg);
}

/* --- freezing --- */

static bool alter(struct control *control, const struct ns_target *source, const char *how)
{
    struct builder sql = {0};
    builder_add_text(&sql, "alter database ");
    pg_add_identifier(&sql, bytes_of(control_database_name(control->arena, source->conf->database)));
    builder_add_bytes(&sql, bytes_of(how));
    builder_add(&sql, "", 1);
    bool is_done =
        control_execute(source->pg, "freezing the database", "set default_transaction_read_only = off") &&
        control_execute(source->pg, "freezing the database", sql.data);
    builder_free(&sql);
    return is_done;
}

/* One that waits for a standby is ended when it has been answered: else its commit would be shown, and could
 * be lost at a failover. */
bool move_site_end_sessions(struct control *control, const struct ns_target *source)
{
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, control->arena);
    pg_params_add_text(&params, bytes_of(control_worker_role(control, source->conf->database)));
    if (!control_query(
            control, source->pg, "ending sessions of servers",
            "select coalesce(array_agg(pid || ' ' || backend_start), '{}')::text from pg_stat_activity"
            " where datname = current_database() and usename = $1::text",
            &params, &row))
        return false;
    pg_params_start(&params, control->arena);
    pg_params_add_text(&params, pg_get_text(row, 0, 0));
    for (int64_t since_ms = clock_monotonic_ms(); clock_monotonic_ms() - since_ms < WAIT_MOST_MS;
         clock_sleep_ms(WAIT_PAUSE_MS)) {
        if (!control_query(control, source->pg, "waiting for sessions of servers",
                           "select count(*) > 0, count(case when wait_event is distinct from 'SyncRep' then"
                           " pg_terminate_backend(pid) end) from pg_stat_activity"
                           " where pid || ' ' || backend_start = any (($1::text)::text[])",
                           &params, &row))
            return false;
        if (!pg_get_bool(row, 0, 0))
            return true;
    }
    return message_refuse("sessions of servers do not end");
}

bool move_site_freeze(struct control *control, const struct ns_target *source)
{
    return alter(control, source, " set default_transaction_read_only = on") &&
           move_site_end_sessions(control, source);
}

bool move_site_thaw(struct control *control, const struct ns_target *source)
{
    return alter(control, source, " reset default_transaction_read_only") &&
           move_site_end_sessions(control, source);
}

/* --- what is carried over --- */

struct carried {
    const char *table, *without; /* columns that are not carried over: a PostgreSQL array */
    const char *rows;            /* of the query; NULL: all */
};
static const struct carried tables[] = {
    /* An attempt that was under way has failed: nothing could be committed. */
    {"taskqueue", "{number,starttime,holder}", " order by number"},
    {"task_history", "{number}", " order by number"},
    {"cron", "{}", ""},
    {"task_paused", "{}", ""},
    {"task_limit", "{}", ""},
    {"task_debt", "{}", ""},
    {"task_unique", "{}", ""},
    {"idempotency", "{}", ""},
    {"spool_series", "{}", ""},
    {"spool_record", "{}", ""},
    {"copy_due", "{}", ""},
    {"subscription", "{}", ""},
    {"subscription_definition", "{}", ""},
    /* Once more what was taken to be sent: numbers of transactions are those of the cluster. */
    {"subscription_matched", "{taken,xid}",
     " where taken = 0 or not exists (select from stampd.subscription_matched o"
     " where (o.session, o.key, o.id, o.kind) = (t.session, t.key, t.id, t.kind)"
     " and o.taken < t.taken)"},
};

static bool list_columns(struct control *control, struct pg *pg, const struct carried *carried,
                         struct bytes *columns_r)
{
    struct pg_result *row;
    const struct pg_params *params =
        PG_PARAMS(control->arena, PG_TEXT(bytes_of(carried->table)), PG_TEXT(bytes_of(carried->without)));
    if (!control_query(control, pg, "reading columns",
                       "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute"
                       " where attrelid = ('stampd.' || $1::text)::regclass and attnum > 0"
                       " and not attisdropped and attname <> all (($2::text)::name[])",
                       params, &row))
        return false;
    *columns_r = pg_get_text(row, 0, 0);
    return true;
}

static bool move_site_complain(struct pg *pg, const struct carried *carried)
{
    return message_refuse("carrying %s over: %s", carried->table, pg_message(pg));
}

static bool store_rows(struct pg *pg, const struct carried *carried, const char *sql, struct builder *rows)
{
    bool is_stored = !rows->size || pg_copy_in(pg, sql, builder_bytes(rows)) == FAULT_NONE;
    builder_clear(rows, 2 * PIECE_BYTES);
    return is_stored || move_site_complain(pg, carried);
}

static bool copy_rows(struct pg *source, struct pg *target, const struct carried *carried, const char *sql)
{
    struct builder rows = {0};
    struct pg_copy_row row;
    bool is_right;
    while ((is_right = pg_copy_next(source, &row) == FAULT_NONE || move_site_complain(source, carried)) &&
           row.count) {
        pg_copy_add_row(&rows, row.count);
        for (int i = 0; i < row.count; i++)
            pg_copy_add_text(&rows, row.fields[i]); /* as it came, whatever its type */
        if (rows.size >= PIECE_BYTES && !(is_right = store_rows(target, carried, sql, &rows)))
            break;
    }
    is_right = is_right && store_rows(target, carried, sql, &rows);
    builder_free(&rows);
    return is_right;
}

static bool carry_table(struct control *from, struct pg *source, struct pg *target,
                        const struct carried *carried)
{
    struct bytes columns;
    if (!list_columns(from, source, carried, &columns))
        return false;
    const char *out =
        arena_printf(from->arena, "copy (select %.*s from stampd.%s t%s) to stdout (format binary)",
                     (int)columns.size, columns.data, carried->table, carried->rows);
    const char *in = arena_printf(from->arena, "copy stampd.%s (%.*s) from stdin (format binary)",
                                  carried->table, (int)columns.size, columns.data);
    const char *empty = arena_printf(from->arena, "delete from stampd.%s", carried->table);
    return control_execute(target, "carrying tables over", empty) &&
           (pg_copy_out(source, out) == FAULT_NONE || move_site_complain(source, carried)) &&
           copy_rows(source, target, carried, in);
}

/* Cursors and tokens of clients stay valid; a document without a row is born above what was purged. */
static bool carry_row(struct control *from, struct pg *source, struct control *to, struct pg *target)
{
    struct pg_result *row;
    if (!control_query(from, source, "reading the row of the namespace",
                       "select secret, floor from stampd.namespace where one", NULL, &row))
        return false;
    const struct pg_params *params =
        PG_PARAMS(to->arena, PG_TEXT(pg_get_text(row, 0, 0)), PG_I64(pg_get_i64(row, 0, 1)));
    return control_query(to, target, "storing the row of the namespace",
                         "update stampd.namespace set secret = $1::text, floor = greatest(floor, $2::bigint)"
                         " where one",
                         params, &row);
}

bool move_site_carry(struct control *from, const struct ns_target *source, struct control *to,
                     const struct ns_target *target)
{
    bool is_done =
        control_execute(target->pg, "carrying tables over", "begin; set local stampd.worker = 'on'");
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        is_done = is_done && carry_table(from, source->pg, target->pg, &tables[i]);
    return is_done && carry_row(from, source->pg, to, target->pg) &&
           control_execute(target->pg, "carrying tables over", "commit");
}

/* --- comparison --- */

static bool move_site_sum_up(struct control *control, struct pg *pg, struct bytes *sum_r)
{
    struct pg_result *row;
    if (!control_query(
            control, pg, "comparing the documents",
            "select count(*) || ' ' || coalesce(sum(hashtextextended(concat_ws('/', octet_length(id),"
            " id, class, version, ctime, dtime, v1, v2), 0)::numeric), 0) from stampd.doc",
            NULL, &row))
        return false;
    *sum_r = pg_get_text(row, 0, 0);
    return true;
}

bool move_site_compare(struct control *from, const struct ns_target *source, struct control *to,
                       const struct ns_target *target)
{
    struct bytes one, other;
    if (!move_site_sum_up(from, source->pg, &one) || !move_site_sum_up(to, target->pg, &other))
        return false;
    if (bytes_equal(one, other))
        return true;
    return message_refuse(
        "the documents there are not those here: something else has written to one of the databases");
}
