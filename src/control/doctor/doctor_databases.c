/* doctor_databases: each check is a row of a query: kind, is it well, what is good, what is bad and what to
 * do. */
#include "control/doctor/doctor.h"

#include <stdlib.h>

#include "base/clock.h"
#include "control/ns/ns_registry.h"

enum { CLOCK_MS = 1000 };

/* Of the cluster. */
static const char cluster_checks[] =
    "select 'FAIL', current_setting('server_version_num')::int >= 150000, 'PostgreSQL ' || "
    "current_setting('server_version'),"
    "  'PostgreSQL ' || current_setting('server_version') || ': at least 15 is needed: pg_upgradecluster'"
    " union all select 'FAIL', setting = 'on', 'PostgreSQL: ' || name || ' is on',"
    "  'PostgreSQL: ' || name || ' is off: ' || case name when 'autovacuum' then 'tables grow for ever' else "
    "'a crash of its host"
    " destroys databases' end || ': alter system reset ' || name || '; then select pg_reload_conf()'"
    "  from pg_settings where name in ('fsync', 'full_page_writes', 'autovacuum')"
    " union all select 'FAIL', setting <> 'off', 'PostgreSQL: synchronous_commit is ' || setting,"
    "  'PostgreSQL: synchronous_commit is off: a crash loses commits that were answered: alter system reset "
    "synchronous_commit'"
    "  from pg_settings where name = 'synchronous_commit'"
    " union all select 'FAIL', exists (select from pg_stat_replication where sync_state in ('sync', "
    "'quorum')),"
    "  'PostgreSQL: a synchronous standby is connected',"
    "  'PostgreSQL: no standby of synchronous_standby_names is connected: commits wait: start it, or empty "
    "that setting'"
    "  where current_setting('synchronous_standby_names') <> ''"
    " union all select 'WARN', state = 'streaming' and coalesce(replay_lag, '0') < interval '1 minute',"
    "  format('PostgreSQL: standby %s follows', application_name),"
    "  format('PostgreSQL: standby %s: %s, %s behind: look into its log', application_name, state, "
    "coalesce(replay_lag, '0'))"
    "  from pg_stat_replication"
    " union all select 'WARN', active, format('PostgreSQL: slot %s is in use', slot_name),"
    "  format('PostgreSQL: slot %s is not in use, and %s of log are kept for it: start its receiver, or "
    "select"
    " pg_drop_replication_slot(''%s'')', slot_name,"
    "  pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), slot_name)"
    "  from pg_replication_slots where not temporary and not pg_is_in_recovery()"
    " union all select 'FAIL', coalesce(last_failed_time < last_archived_time, last_failed_time is null),"
    "  'PostgreSQL: the log is archived',"
    "  'PostgreSQL: archive_command fails since ' || last_failed_time::timestamp(0) || ': look into its log'"
    "  from pg_stat_archiver where current_setting('archive_mode') <> 'off'"
    " union all select 'WARN', count(*) = 0, 'PostgreSQL: no transaction is older than an hour',"
    "  'PostgreSQL: process ' || min(pid) || ' has a transaction that is older than an hour, and nothing is "
    "cleaned up"
    " meanwhile: select pg_terminate_backend(' || min(pid) || ')'"
    "  from pg_stat_activity where xact_start < now() - interval '1 hour'";

/* Of a namespace. */
static const char task_checks[] =
    "select 'FAIL', running > 0 or oldest > stampd.stamp_of(now() - interval '1 minute'),"
    "  format('queue %s: %s tasks are due', qn, due),"
    "  format('queue %s: %s tasks are due, since %s, and none runs: systemctl status stamp-queue; "
    "doc/how-to/task-does-not-run.md',"
    "    qn, due, oldest)"
    "  from stampd.task_backlog() b where due > 0 and not exists (select from stampd.task_paused p where "
    "p.qn = b.qn)"
    " union all select 'WARN', parked = 0, '', format('queue %s: %s tasks are parked after failures: "
    "stampctl task list %s --state parked',"
    "  qn, parked, substring(current_database() from '^stampd_(.*)')) from stampd.task_backlog() where "
    "parked > 0"
    " union all select 'WARN', false, '', format('%s is paused since %s: stampctl task resume', what, since) "
    "from stampd.task_paused";

static bool doctor_ask(struct doctor *doctor, struct pg *pg, const char *sql, const char *before)
{
    struct arena *arena = doctor->control->arena;
    struct pg_result *rows;
    if (!control_query(doctor->control, pg, "doctor", sql, NULL, &rows))
        return false;
    for (int i = 0; i < pg_rows(rows); i++) {
        struct bytes kind = pg_get_text(rows, i, 0), good = pg_get_text(rows, i, 2),
                     bad = pg_get_text(rows, i, 3);
        doctor_find(doctor, bytes_equal(kind, BYTES("WARN")) ? DOCTOR_WARN : DOCTOR_FAIL,
                    pg_get_bool(rows, i, 1), arena_printf(arena, "%s%.*s", before, (int)good.size, good.data),
                    arena_printf(arena, "%s%.*s", before, (int)bad.size, bad.data));
    }
    return true;
}

/* Ends and tokens depend on the clock of this host, versions on that of PostgreSQL. */
static void doctor_compare_clocks(struct doctor *doctor, struct pg *z)
{
    struct arena *arena = doctor->control->arena;
    struct pg_result *row;
    int64_t before_ms = clock_wall_ms();
    if (!control_query(doctor->control, z, "doctor",
                       "select (extract(epoch from clock_timestamp()) * 1000)::bigint", NULL, &row))
        return;
    int64_t now_ms = clock_wall_ms(), theirs_ms = pg_get_i64(row, 0, 0);
    int64_t apart_ms = theirs_ms < before_ms ? before_ms - theirs_ms
                       : theirs_ms > now_ms  ? theirs_ms - now_ms
                                             : 0;
    doctor_find(
        doctor, DOCTOR_WARN, apart_ms < CLOCK_MS, "the clocks of this host and of PostgreSQL agree",
        arena_printf(
            arena,
            "the clocks of this host and of PostgreSQL are %lld ms apart: timedatectl set-ntp true on both",
            (long long)apart_ms));
}

static void doctor_check_tasks(struct doctor *doctor, const struct namespace_conf *conf)
{
    struct pg *pg;
    struct arena *arena = doctor->control->arena;
    if (conf->is_malformed || control_connect(doctor->control, conf->database, &pg) != FAULT_NONE ||
        !doctor_ask(doctor, pg, task_checks, arena_printf(arena, "namespace %s: ", conf->code)))
        doctor_find(doctor, DOCTOR_FAIL, false, "",
                    arena_printf(arena, "namespace %s: its tasks cannot be read: stampctl ns create %s",
                                 conf->code, conf->code));
}

void doctor_check_databases(struct doctor *doctor)
{
    struct control *control = doctor->control;
    struct namespace_conf *confs;
    struct pg *z;
    size_t count;
    bool is_there = ns_registry_open(control, &z) && ns_registry_read(control, z, &confs, &count);
    doctor_find(doctor, DOCTOR_FAIL, is_there, "PostgreSQL can be reached as administrator",
                "PostgreSQL cannot be reached as administrator: systemctl status postgresql; run this "
                "command as root");
    if (!is_there)
        return;
    if (!doctor_ask(doctor, z, cluster_checks, ""))
        doctor->is_well = false;
    doctor_compare_clocks(doctor, z);
    for (size_t i = 0; i < count; i++)
        doctor_check_tasks(doctor, &confs[i]);
}
