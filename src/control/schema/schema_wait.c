/* schema_wait: the transactions are those that hold a virtual transaction id now. */
#include "control/schema/schema_wait.h"

#include "control/message.h"
#include "base/clock.h"

enum { WAIT_PAUSE_MS = 20, REPORT_EVERY_MS = 5000 };

/* Transactions of this database that run now and began before.  Transactions that begin later read the
 * schema's new number; those that began before may not. */
bool schema_wait_for_older(struct control *control, struct pg *pg)
{
    struct pg_result *older, *left;
    if (!control_query(control, pg, "looking for older transactions",
                       "select coalesce(string_agg(l.virtualxid, ' '), '') from pg_locks l"
                       " join pg_stat_activity a on a.pid = l.pid and a.datname = current_database()"
                       " where l.locktype = 'virtualxid' and l.pid <> pg_backend_pid()"
                       " and a.backend_type = 'client backend'",
                       NULL, &older))
        return false;
    struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(pg_get_text(older, 0, 0)));
    for (int64_t reported_ms = clock_monotonic_ms();; clock_sleep_ms(WAIT_PAUSE_MS)) {
        if (!control_query(
                control, pg, "waiting for older transactions",
                "select count(*), coalesce(string_agg(pid::text, ', '), '') from pg_locks"
                " where locktype = 'virtualxid' and virtualxid = any (string_to_array($1::text, ' '))",
                params, &left))
            return false;
        if (pg_get_i64(left, 0, 0) == 0)
            return true;
        if (clock_monotonic_ms() - reported_ms < REPORT_EVERY_MS)
            continue;
        reported_ms = clock_monotonic_ms();
        struct bytes pids = pg_get_text(left, 0, 1);
        message_print("waiting for %lld earlier transactions of the processes %.*s",
                      (long long)pg_get_i64(left, 0, 0), (int)pids.size, pids.data);
    }
}
