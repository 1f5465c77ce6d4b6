/* ns_purge: the statements. */
#include "control/ns/ns_purge.h"

#include <stdio.h>

#include "control/message.h"

/* Each batch is a transaction of its own. */
static bool repeat(struct control *control, struct pg *pg, const char *sql, int64_t *total_r)
{
    struct pg_result *result;
    *total_r = 0;
    for (int64_t count = 1; count; *total_r += count) {
        if (!control_query(control, pg, "purging", sql, NULL, &result))
            return false;
        count = pg_get_i64(result, 0, 0);
    }
    return true;
}

bool ns_purge_run(struct control *control, struct pg *pg, const char *code, int64_t days)
{
    const char *limit =
        arena_printf(control->arena, "stampd.stamp_of(now() - interval '%lld days')", (long long)days);
    int64_t ended, departures, zombies, subscriptions;
    if (!repeat(control, pg, "select stampd.expire_documents()", &ended) ||
        !repeat(control, pg, arena_printf(control->arena, "select stampd.purge_departures(%s)", limit),
                &departures) ||
        !repeat(control, pg, arena_printf(control->arena, "select stampd.purge_zombies(%s)", limit),
                &zombies) ||
        !repeat(control, pg, "select stampd.purge_subscriptions()", &subscriptions))
        return false;
    printf("%s: %lld documents had ended, %lld deleted ones and %lld departures are forgotten\n", code,
           (long long)ended, (long long)zombies, (long long)departures);
    if (subscriptions)
        printf("%s: %lld subscriptions had ended\n", code, (long long)subscriptions);
    return true;
}

/* What the functions above would delete, at one instant; the last row has no class. */
static const char counting[] =
    "with aged as (select stampd.zombie_limits() as limits, least(stampd.stamp_of(now() - make_interval(days "
    "=> "
    "$1)), stampd.stamp_now()) as before), "
    "found (class, ended, zombie, departure, subscription) as ("
    "select e.class, count(*), 0::bigint, 0::bigint, 0::bigint from stampd.expiry e join "
    "stampd.expiry_property p "
    "using (class) where e.until <= stampd.present_minute() group by e.class "
    "union all select d.class, 0, count(*), 0, 0 from stampd.doc d, aged a "
    "where d.ctime = 0 and d.version < coalesce((a.limits ->> d.class)::bigint, a.before) group by d.class "
    "union all select c.class, 0, 0, count(*), 0 from stampd.member m join stampd.collection c on c.number = "
    "m.collection, aged a where m.has_left and m.version < coalesce((a.limits ->> c.class)::bigint, "
    "a.before) "
    "group by c.class "
    "union all select s.class, 0, 0, count(*), 0 from stampd.sight s, aged a "
    "where s.version < coalesce((a.limits ->> s.class)::bigint, a.before) group by s.class "
    "union all select null, 0, 0, (select count(*) from stampd.member m where not exists (select from "
    "stampd.collection c where c.number = m.collection)), "
    "(select count(*) from stampd.subscription u where u.until <= stampd.present_minute())) "
    "select f.class, sum(f.ended)::bigint, sum(f.zombie)::bigint, sum(f.departure)::bigint, "
    "sum(f.subscription)::bigint from found f group by grouping sets ((f.class), ()) "
    "having f.class is not null or grouping(f.class) = 1 order by grouping(f.class), f.class";

bool ns_purge_count(struct control *control, struct pg *pg, const char *code, int64_t days)
{
    struct pg_result *result;
    if (!control_query(control, pg, code, counting, PG_PARAMS(control->arena, PG_I32((int32_t)days)),
                       &result))
        return false;
    int rows = pg_rows(result);
    for (int i = 0; i < rows; i++) {
        bool is_total = i + 1 == rows;
        struct bytes class = pg_get_text(result, i, 0);
        printf("%s: %.*s%s%lld expired, %lld deleted, %lld departures%s", code, (int)class.size,
               is_total ? "" : class.data, is_total ? "" : ": ", (long long)pg_get_i64(result, i, 1),
               (long long)pg_get_i64(result, i, 2), (long long)pg_get_i64(result, i, 3),
               is_total ? "" : "\n");
        if (is_total)
            printf(", %lld subscriptions would be purged\n", (long long)pg_get_i64(result, i, 4));
    }
    return true;
}
