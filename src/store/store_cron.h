/* store_cron: the rules of periodic tasks in PostgreSQL (sql/0010_cron.sql).  Turns of a rule end by
 * store_commit. */
#ifndef STAMPD_STORE_STORE_CRON_H
#define STAMPD_STORE_STORE_CRON_H

#include "store/store.h"

/* A rule that a module declares, named as its operation. */
struct cron_declaration {
    struct bytes name, period, module;
};
/* A rule to be planned: it has no task, or one that waits for another time. */
struct cron_rule {
    struct bytes name, operation, period;
    int64_t after; /* its next time is the first one later than this stamp */
};

/* Takes the declarations for the rules of modules, takes back the tasks of rules that have gone, and finds
 * what is to be planned. */
MUST_USE enum fault store_scan_rules(struct store *store, int ns, struct arena *arena,
                                     const struct cron_declaration *declarations, size_t count,
                                     struct cron_rule **rules_r, size_t *count_r);

/* Makes the task of the rule wait for the stamp `next`; is_made_r: false when it runs, or when another has
 * changed the rule. */
MUST_USE enum fault store_plan_rule(struct store *store, int ns, struct arena *arena,
                                    const struct cron_rule *rule, int64_t next, int queue, bool *is_made_r);

#endif
