/* cmd_ns_list: `stampctl ns list`: the namespaces and their databases. */
#include "control/ns/cmd_ns.h"

#include <stdio.h>
#include <string.h>

#include "control/ns/migrations.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"
#include "records/records.h"

static bool read_size(struct control *control, struct pg *pg, const char *database, int64_t *size_r)
{
    struct pg_result *result;
    if (!control_query(
            control, pg, database,
            "select pg_database_size(datname) from pg_database where datname = $1::text",
            PG_PARAMS(control->arena, PG_TEXT(bytes_of(control_database_name(control->arena, database)))),
            &result))
        return false;
    *size_r = pg_rows(result) ? pg_get_i64(result, 0, 0) : -1; /* -1: there is no such database */
    return true;
}

/* Both numbers come from PostgreSQL's statistics: to count would read the whole table. */
static bool read_inside(struct control *control, const char *database, int *schema_r, int64_t *documents_r)
{
    struct pg *pg;
    struct pg_result *result;
    *documents_r = 0;
    if (control_connect(control, database, &pg) != FAULT_NONE || !migrations_applied(control, pg, schema_r))
        return false;
    if (!*schema_r)
        return true;
    if (!control_query(
            control, pg, database,
            "select greatest(c.reltuples, s.n_live_tup, 0)::bigint from pg_class c "
            "left join pg_stat_user_tables s on s.relid = c.oid where c.oid = 'stampd.doc'::regclass",
            NULL, &result))
        return false;
    *documents_r = pg_get_i64(result, 0, 0);
    return true;
}

/* A namespace of the list; `size` -1: its database is missing or cannot be read; `records` -1: they cannot
 * be read. */
struct listed {
    int64_t size, documents, records, records_bytes;
    int schema;
};

/* What the namespaces of this host have. */
struct uses {
    struct records_use of[RECORDS_SPACES_MOST];
    size_t count;
    bool is_known;
};

/* A connection for each cell that was asked for; the others are shown when one is away. */
struct clusters {
    const char *cells[SETTINGS_CELLS_MOST + 1];
    struct pg *pgs[SETTINGS_CELLS_MOST + 1]; /* NULL: it is away */
    size_t count;
};

static struct pg *find_cluster(struct control *control, struct clusters *clusters, const char *cell)
{
    size_t i = 0;
    while (i < clusters->count && strcmp(clusters->cells[i], cell) != 0)
        i++;
    if (i == clusters->count && i < COUNT_OF(clusters->cells)) {
        clusters->cells[clusters->count++] = cell;
        if (!ns_database_open_cell(control, cell, &clusters->pgs[i]))
            clusters->pgs[i] = NULL;
    }
    return i < clusters->count ? clusters->pgs[i] : NULL;
}

/* Not known: the file is that of another user. */
static void read_uses(struct control *control, struct uses *uses_r)
{
    const char *path = arena_printf(control->arena, "%s/records", control->settings.run_directory);
    uses_r->count = 0;
    uses_r->is_known = !control->settings.records_mb || records_peek(path, uses_r->of, &uses_r->count);
}

static void find_use(const struct uses *uses, const char *code, struct listed *listed)
{
    listed->records = listed->records_bytes = uses->is_known ? 0 : -1;
    for (size_t i = 0; i < uses->count; i++)
        if (strcmp(uses->of[i].ns, code) == 0) {
            listed->records = (int64_t)uses->of[i].records;
            listed->records_bytes = (int64_t)uses->of[i].bytes;
        }
}

static void print_listed(const struct namespace_conf *conf, const struct listed *listed)
{
    printf("%-16s  %-24s  ", conf->code, conf->database);
    if (listed->size >= 0)
        printf("%10.1f  %12lld  %6d  ", (double)listed->size / 1e6, (long long)listed->documents,
               listed->schema);
    else
        printf("%10s  %12s  %6s  ", "missing", "-", "-");
    if (listed->records >= 0)
        printf("%10lld  %10.1f  ", (long long)listed->records, (double)listed->records_bytes / 1e6);
    else
        printf("%10s  %10s  ", "-", "-");
    printf("%-6s  %-8s  %s\n", conf->access, namespace_state_word(conf->state), conf->message);
}

static void write_listed(const struct namespace_conf *conf, const struct listed *listed)
{
    struct record record = {0};
    record_add_word(&record, "code", conf->code);
    record_add_word(&record, "database", conf->database);
    record_add_bool(&record, "exists", listed->size >= 0);
    if (listed->size >= 0) {
        record_add_i64(&record, "bytes", listed->size);
        record_add_i64(&record, "documents", listed->documents);
        record_add_i64(&record, "schema", listed->schema);
    }
    if (listed->records >= 0) {
        record_add_i64(&record, "records", listed->records);
        record_add_i64(&record, "records_bytes", listed->records_bytes);
    }
    record_add_word(&record, "access", conf->access);
    record_add_word(&record, "state", namespace_state_word(conf->state));
    record_add_word(&record, "message", *conf->message ? conf->message : NULL);
    record_print(&record);
}

static bool cmd_ns_list_list(struct control *control, bool is_json)
{
    struct namespace_conf *confs;
    size_t count;
    struct pg *z;
    if (!ns_registry_open(control, &z) || !ns_registry_read(control, z, &confs, &count))
        return false;
    struct clusters clusters = {0};
    struct uses *uses = ARENA_NEW(control->arena, struct uses);
    bool is_whole = true;
    read_uses(control, uses);
    if (!is_json)
        printf("%-16s  %-24s  %10s  %12s  %6s  %10s  %10s  %-6s  %-8s  %s\n", "CODE", "DATABASE", "SIZE MB",
               "DOCUMENTS", "SCHEMA", "RECORDS", "RECORDS MB", "ACCESS", "STATE", "MESSAGE");
    for (size_t i = 0; i < count; i++) {
        const struct namespace_conf *conf = &confs[i];
        struct listed listed = {0};
        struct pg *maintenance = find_cluster(control, &clusters, settings_cell_of(conf->database));
        if (!maintenance || !read_size(control, maintenance, conf->database, &listed.size))
            listed.size = -1;
        if (listed.size >= 0 && !read_inside(control, conf->database, &listed.schema, &listed.documents))
            listed.size = -1;
        find_use(uses, conf->code, &listed);
        is_whole = is_whole && listed.size >= 0;
        (is_json ? write_listed : print_listed)(conf, &listed);
    }
    return is_whole;
}

int cmd_ns_list(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("ns list", "",
                "List the namespaces: database, size, estimated number of documents, schema, records.", NULL);
    bool is_json = false;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        RECORD_JSON_LINE(&is_json)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return cmd_ns_list_list(control, is_json) ? CONTROL_DONE : CONTROL_FAILED;
}
