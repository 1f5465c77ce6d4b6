/* store_cron: the rules of periodic tasks in PostgreSQL (sql/0005_cron.sql). store_commit ends the runs of
 * a rule. */
#ifndef STAMPD_STORE_TASKS_STORE_CRON_H
#define STAMPD_STORE_TASKS_STORE_CRON_H

#include "store/store.h"

/* A rule that a module declares, named as its operation. */
struct cron_declaration {
    struct bytes name, period, module;
};
/* A rule to plan: it has no task, or one that waits for another time. */
struct cron_rule {
    struct bytes name, operation, period;
    int64_t after; /* its next time is the first one later than this stamp */
};

/* Stores the rules that modules declare, removes the tasks of rules that are gone, and finds the rules to
 * plan. */
MUST_USE enum fault store_cron_scan(struct store *store, int ns, struct arena *arena,
                                    const struct cron_declaration *declarations, size_t count,
                                    struct cron_rule **rules_r, size_t *count_r);

/* Makes the task of the rule wait for the stamp `next`; is_made_r: false if it is running, or another
 * process has changed the rule. */
MUST_USE enum fault store_cron_plan(struct store *store, int ns, struct arena *arena,
                                    const struct cron_rule *rule, int64_t next, int queue, bool *is_made_r);

#endif
