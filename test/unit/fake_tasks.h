/* fake_tasks: stands in for store/tasks/store_tasks.c at link time, beside fake_store: a queue in memory. */
#ifndef STAMPD_TEST_FAKE_TASKS_H
#define STAMPD_TEST_FAKE_TASKS_H

#include "store/documents/store_commit.h"
#include "store/tasks/store_cron.h"
#include "store/collections/store_subscriptions.h"
#include "store/tasks/store_tasks.h"

struct fake_task {
    struct task task;
    struct bytes holder; /* of its claim */
    const char *code, *report;
    bool is_gone;
};
struct fake_end {
    const char *id, *code; /* code NULL: done */
    int64_t claim, attempt, step;
};

struct fake_queue {
    struct fake_task tasks[64];
    size_t count;
    struct fake_end ends[64];
    size_t end_count;
    enum fault claim_fault, back_fault;
    void (*after_claim)(void);
};
extern struct fake_queue queue;

/* In place of store/collections/store_subscriptions.c. */
struct fake_subs {
    struct subscription subscription; /* answered */
    bool is_there;
    enum fault fault;
    const char *limit; /* with FAULT_ALIMIT */
    int reads, changes, drops;
    void (*then)(void);                /* after a change; NULL: nothing */
    struct subscription_change change; /* the last one; what it points at, below */
    struct push_address push;
    struct bytes context;
};
extern struct fake_subs subs;

/* Before each test, and behind the last. */
void fake_forget_tasks(void);
/* A task that waits; its texts are copied. */
struct fake_task *fake_add_task(const char *id, const char *operation, const char *param);
/* The one of that name, also when it is gone; NULL: there was none. */
struct fake_task *fake_find_task(const char *id);
/* What store_commit does with tasks: FAULT_FENCED, or all of it. */
enum fault fake_commit_tasks(struct commit *commit);

#endif
