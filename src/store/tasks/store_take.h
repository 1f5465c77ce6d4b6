/* store_take: what external workers claim (workers.md): by a request of its own, or in the commit that ends a
 * task. */
#ifndef STAMPD_STORE_TASKS_STORE_TAKE_H
#define STAMPD_STORE_TASKS_STORE_TAKE_H

#include "model/task/task.h"
#include "store/store.h"

/* Claims tasks of a queue until `until`. */
struct task_take {
    int queue;
    struct bytes domain; /* NO_BYTES: any */
    int64_t most, claim, until;
    struct bytes holder;
    const struct task_fence *after; /* the attempt whose end has them claimed; NULL: none has */
};
struct task_taken {
    struct task *tasks; /* in no order */
    int64_t *untils;    /* the end of each claim */
    size_t count;
    int64_t next;     /* fewer than wanted: the stamp at which there may be more; 0: none is known */
    bool has_overdue; /* claims of the queue have ended */
};
/* Not durably, as store_tasks_claim does.  FAULT_XUNKNOWN: tasks may have been claimed. */
MUST_USE enum fault store_take(struct store *store, int ns, struct arena *arena, const struct task_take *take,
                               struct task_taken *taken_r);

/* The member `take` of a fence: the commit that ends the attempt claims, too, as one of its parts.  That it
 * cannot claim does not stop it.  The tasks in the fence's `taken` are as they are stored until
 * store_take_open. */
MUST_USE enum fault store_take_open(struct store *store, int ns, struct arena *arena,
                                    struct task_taken *taken);
/* What the end of the attempt has claimed of the queue, in its commit or later, as far as the claims last. */
MUST_USE enum fault store_take_following(struct store *store, int ns, struct arena *arena, int queue,
                                         const struct task_fence *fence, struct task_taken *taken_r);

#endif
