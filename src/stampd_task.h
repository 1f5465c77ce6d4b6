/* stampd_task.h: tasks, which operations of modules schedule and run: a part of stampd.h, which includes it.
 *
 * A task is an operation of the same namespace that runs later, in another request.  It is retried until it
 * succeeds or is parked; its effects take place exactly once (tasks.md).  The commit of the operation that
 * schedules it creates it; if that operation fails, no task is created. */
#ifndef STAMPD_STAMPD_TASK_H
#define STAMPD_STAMPD_TASK_H

#ifndef STAMPD_STAMPD_H
#error "include stampd.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    STAMPD_FIRST = -1 /* priority 0, before all others */
};

struct stampd_task {
    const char *operation;     /* any existing one, including built-in ones */
    struct stampd_bytes param; /* a JSON object; no data: an empty one.  At most limit_task_param_bytes */
    int64_t start;             /* a stamp: not before.  0: `delay_s` from now */
    int64_t delay_s;
    const char *info; /* text by which administrators find it; NULL: none */
    int priority;     /* 1 to 255, smaller is sooner; 0: 20; STAMPD_FIRST */
    const char
        *resource; /* while a task of the operation waits for the resource, no other is created: the waiting
                      one takes the new param and info, the later start, the smaller priority; NULL: none */
    const char *domain; /* tasks of a domain run one at a time, by priority and start; NULL: none */
    /* "strict": in its domain it starts only after all tasks created before it with strict order, even while
     * one of those waits for its next try or is parked; NULL: as above. */
    const char *order;
    /* With a resource: later requests delay the start at most so long after the first; 0: without limit. */
    int64_t longest_wait_s;
    const char *key; /* by which limits count it (tasks.md); NULL: none; since 1.11 */
    /* With a resource: while a task of the operation for it waits or runs, none is created and nothing is
     * changed; nor, if this request creates one, until so long after its creation, if later requests are
     * unique too.  "30s", "10m", "2h", "1d", at most task_history_s; "0s": no longer than it waits or runs;
     * NULL: it is not unique; since 1.15 */
    const char *unique;
};

/* Schedules a task; at most limit_tasks in one operation.  Its texts must live as long as the request. */
void stampd_schedule(struct stampd_call *call, const struct stampd_task *task);

/* Since 1.15.  The commit cancels the tasks of the operation that wait, are parked or run for the resource,
 * but the one that this call runs; what a running one does is not committed.  Tasks that the same commit
 * creates are created afterwards, whichever call came first: cancel and schedule replace a task.  If there
 * is none, or this operation fails, nothing is cancelled.  At most limit_tasks in one operation.  The texts
 * must live as long as the request. */
void stampd_cancel_task(struct stampd_call *call, const char *operation, const char *resource);

/* Does this call run a task?  Then it has no key and no afterwork.  Otherwise these return 0 or NULL. */
bool stampd_is_task(const struct stampd_call *call);
const char *stampd_task_id(const struct stampd_call *call);
const char *stampd_task_info(const struct stampd_call *call);
int64_t stampd_task_start(const struct stampd_call *call);  /* stamp of the start of this attempt */
unsigned stampd_task_retry(const struct stampd_call *call); /* attempts that failed, or were lost, before */
unsigned stampd_task_step(const struct stampd_call *call);  /* commits that it has made, in all attempts */

/* A task with more work than one commit should hold sets a checkpoint: after the commit, `work` begins again
 * at once, in the same request, and receives the checkpoint.  A task that sets none is finished.  After a
 * failure, or when the time of the request runs out between two cycles, it continues from its last
 * checkpoint.  NULL: the first cycle.  Setting one outside a task is BMODULE. */
const struct stampd_json *stampd_checkpoint(struct stampd_call *call);
void stampd_set_checkpoint(struct stampd_call *call, struct stampd_writer *writer);
/* The commit with the checkpoint stores this text, cut after 500 bytes, as the progress of the task. */
void stampd_set_progress(struct stampd_call *call, const char *text);

/* If this try fails, its task is parked at once, without another attempt. */
void stampd_never_retry(struct stampd_call *call);

#ifdef __cplusplus
}
#endif

#endif
