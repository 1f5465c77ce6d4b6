/* cmd_cell: `stampctl cell`: the PostgreSQL clusters of the settings, and the namespaces in each. */
#include "control/control.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"

#define NAME_OF_FIRST "-" /* for people; "" in JSON */

struct cells {
    struct control *control;
    struct namespace_conf *confs;
    size_t count;
    bool is_json;
};

static bool read_namespaces(struct cells *cells)
{
    struct pg *z;
    return ns_registry_open(cells->control, &z) &&
           ns_registry_read(cells->control, z, &cells->confs, &cells->count);
}

static int64_t count_namespaces(const struct cells *cells, const char *cell)
{
    int64_t count = 0;
    for (size_t i = 0; i < cells->count; i++)
        count += strcmp(settings_cell_of(cells->confs[i].database), cell) == 0;
    return count;
}

/* "host:port", as the setting has them; several, separated by commas. */
static const char *address_of(struct control *control, const char *cell)
{
    const char *conninfo = settings_conninfo_of_cell(&control->settings, cell);
    const char *host = pg_conninfo_value(control->arena, conninfo, "host");
    const char *port = pg_conninfo_value(control->arena, conninfo, "port");
    if (!host)
        host = pg_conninfo_value(control->arena, conninfo, "hostaddr");
    return arena_printf(control->arena, "%s%s%s", host ? host : "local", port ? ":" : "", port ? port : "");
}

/* --- list --- */

static void show_cell(struct cells *cells, const char *cell)
{
    struct record record = {0};
    const char *address = address_of(cells->control, cell);
    int64_t count = count_namespaces(cells, cell);
    if (!cells->is_json) {
        printf("%-16s  %10lld  %s\n", *cell ? cell : NAME_OF_FIRST, (long long)count, address);
        return;
    }
    record_add_word(&record, "name", cell);
    record_add_i64(&record, "namespaces", count);
    record_add_word(&record, "address", address);
    record_print(&record);
}

static int cell_list(struct control *control, int argc, char **argv)
{
    struct cells cells = {.control = control};
    static const struct command command = COMMAND(
        "cell list", "", "List the cells of the settings, with the number of their namespaces.",
        "A cell is a PostgreSQL cluster, setting database.NAME.  The first, -, is that of the setting "
        "database.\n");
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        RECORD_JSON_LINE(&cells.is_json)};
    if (!control_begin(control, &command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (!read_namespaces(&cells))
        return CONTROL_FAILED;
    if (!cells.is_json)
        printf("%-16s  %10s  %s\n", "CELL", "NAMESPACES", "ADDRESS");
    show_cell(&cells, "");
    for (size_t i = 0; i < control->settings.cell_count; i++)
        show_cell(&cells, control->settings.cells[i].name);
    return CONTROL_DONE;
}

/* --- status --- */

enum { TIMELINE, STANDBYS, SYNCHRONOUS, BEHIND, IS_WAITED_FOR, SYSTEM };
static const char state[] =
    "select ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint,"
    " count(r.pid), count(*) filter (where r.sync_state in ('sync', 'quorum')),"
    " coalesce(max(pg_wal_lsn_diff(pg_current_wal_flush_lsn(), r.replay_lsn)), 0)::bigint,"
    " current_setting('synchronous_standby_names') <> '',"
    " (select system_identifier::text from pg_control_system())"
    " from (select 1) one left join pg_stat_replication r on r.state = 'streaming'";

/* `row` NULL: it cannot be reached. */
static void show_state(struct cells *cells, const char *cell, const struct pg_result *row, const char *word)
{
    struct record record = {0};
    if (!cells->is_json && !row) {
        printf("%-16s  %-12s  %10s  %8s  %8s  %11s  %10s\n", *cell ? cell : NAME_OF_FIRST, word, "-", "-",
               "-", "-", "-");
        return;
    }
    if (!cells->is_json) {
        printf("%-16s  %-12s  %10lld  %8lld  %8lld  %11lld  %10.1f\n", *cell ? cell : NAME_OF_FIRST, word,
               (long long)count_namespaces(cells, cell), (long long)pg_get_i64(row, 0, TIMELINE),
               (long long)pg_get_i64(row, 0, STANDBYS), (long long)pg_get_i64(row, 0, SYNCHRONOUS),
               (double)pg_get_i64(row, 0, BEHIND) / 1e6);
        return;
    }
    record_add_word(&record, "name", cell);
    record_add_word(&record, "state", word);
    record_add_i64(&record, "namespaces", count_namespaces(cells, cell));
    if (row) {
        record_add_text(&record, "system", pg_get_text(row, 0, SYSTEM));
        record_add_i64(&record, "timeline", pg_get_i64(row, 0, TIMELINE));
        record_add_i64(&record, "standbys", pg_get_i64(row, 0, STANDBYS));
        record_add_i64(&record, "synchronous", pg_get_i64(row, 0, SYNCHRONOUS));
        record_add_i64(&record, "bytes_behind", pg_get_i64(row, 0, BEHIND));
    }
    record_print(&record);
}

static bool look_at(struct cells *cells, const char *cell)
{
    struct pg *pg;
    struct pg_result *row;
    if (!ns_database_open_cell(cells->control, cell, &pg) ||
        !control_query(cells->control, pg, *cell ? cell : "the first cell", state, NULL, &row)) {
        show_state(cells, cell, NULL, "away");
        return false;
    }
    /* Commits wait for a standby that is not there. */
    bool is_stuck = pg_get_bool(row, 0, IS_WAITED_FOR) && !pg_get_i64(row, 0, SYNCHRONOUS);
    show_state(cells, cell, row, is_stuck ? "waits" : "up");
    return !is_stuck;
}

static int cell_status(struct control *control, int argc, char **argv)
{
    struct cells cells = {.control = control};
    static const struct command command =
        COMMAND("cell status", "[NAME]", "Ask the primary of a cell, or of all, how it is.",
                "STATE is up, away (no primary answers), or waits: commits wait for a synchronous standby, "
                "and none is\nconnected.  Ends with 1 unless all are up.\n");
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        RECORD_JSON_LINE(&cells.is_json)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    const char *only = words[0] && strcmp(words[0], NAME_OF_FIRST) == 0 ? "" : words[0];
    if (only && !settings_conninfo_of_cell(&control->settings, only))
        return message_end(CONTROL_WRONG, "cell status: %s: there is no setting database.%s", only, only);
    bool is_well = read_namespaces(&cells); /* without z the cells can be asked all the same */
    if (!cells.is_json)
        printf("%-16s  %-12s  %10s  %8s  %8s  %11s  %10s\n", "CELL", "STATE", "NAMESPACES", "TIMELINE",
               "STANDBYS", "SYNCHRONOUS", "BEHIND MB");
    if (!only || !*only)
        is_well = look_at(&cells, "") && is_well;
    for (size_t i = 0; i < control->settings.cell_count; i++) {
        const char *name = control->settings.cells[i].name;
        if (!only || strcmp(only, name) == 0)
            is_well = look_at(&cells, name) && is_well;
    }
    return is_well ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- switch --- */

enum { SWITCH_MOST_MS = 60000, SWITCH_PAUSE_MS = 20 };

struct lease_row {
    int64_t epoch;
    const char *holder; /* NULL: nobody */
};

static bool read_lease(struct control *control, struct pg *z, struct lease_row *row_r)
{
    struct pg_result *row;
    if (!control_query(control, z, "the lease",
                       "select epoch, case when installation is not null then holder end from stampd.lease"
                       " where one",
                       NULL, &row) ||
        !pg_rows(row))
        return false;
    struct bytes holder = pg_get_text(row, 0, 1);
    *row_r = (struct lease_row){pg_get_i64(row, 0, 0),
                                holder.data ? arena_copy(control->arena, holder.data, holder.size) : NULL};
    return true;
}

static bool hand_over(struct control *control)
{
    struct pg *z;
    struct lease_row before, now;
    if (!ns_registry_open(control, &z) || !read_lease(control, z, &before))
        return false;
    if (!before.holder)
        return message_refuse("cell switch: no host serves");
    int64_t begun_ms = clock_monotonic_ms();
    if (!control_execute(z, "asking the host that serves",
                         "select pg_notify('" LEASE_CHANNEL "', '" LEASE_SWITCH "')"))
        return false;
    do {
        clock_sleep_ms(SWITCH_PAUSE_MS);
        if (!read_lease(control, z, &now))
            return false;
        int64_t spent_ms = clock_monotonic_ms() - begun_ms;
        if (now.holder && now.epoch != before.epoch) {
            printf("%s serves, in place of %s, after %lld.%lld s\n", now.holder, before.holder,
                   (long long)(spent_ms / 1000), (long long)(spent_ms / 100 % 10));
            return true;
        }
    } while (clock_monotonic_ms() - begun_ms < SWITCH_MOST_MS);
    return message_refuse("cell switch: %s", now.holder ? "the host that serves does not hand over"
                                                        : "no other host has taken over");
}

static int cell_switch(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("cell switch", "", "Have another host of a pair serve.",
                "The host that serves ends in good order, and systemd starts it again to wait; another one "
                "takes over at once.\nFor another primary of PostgreSQL: patronictl switchover.\n");
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    if (!control_begin(control, &command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (control->settings.hosts != HOSTS_PAIR)
        return message_end(CONTROL_FAILED, "cell switch: the settings do not have hosts = pair");
    return hand_over(control) ? CONTROL_DONE : CONTROL_FAILED;
}

int control_cell(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"list", "List the cells of the settings.", cell_list},
        {"status", "Ask the primary of a cell, or of all, how it is.", cell_status},
        {"switch", "Have another host of a pair serve.", cell_switch},
    };
    return options_choose("cell", "The PostgreSQL clusters that namespaces are in.\n", choices,
                          COUNT_OF(choices), control, argc, argv);
}
