/* operation: what an operation is: its name, the right that it needs, and the functions that do its work.
 * Those that are built in are in builtin.h, those of modules are made by module/; registry.h finds them by
 * name. */
#ifndef STAMPD_OPERATION_OPERATION_H
#define STAMPD_OPERATION_OPERATION_H

#include "base/base.h"
#include "base/fault.h"

struct attempt; /* attempt.h */
struct call;    /* call.h */

/* Required to run an operation: the namespace's access for reading or for writing, only that the namespace is
 * open, or the administrator's key. */
enum right { RIGHT_READ, RIGHT_WRITE, RIGHT_PUBLIC, RIGHT_ADMIN };

/* The properties of an operation as a task; all zero: the defaults. */
struct task_traits {
    int queue;
    int batch;       /* most that share a commit; 0: 1 */
    int64_t limit_s; /* 0: limit_task_s */
    bool is_never_retried, may_clients_schedule;
    bool is_external;    /* external workers take its tasks, from this queue (task_external.h) */
    bool is_internal;    /* only the server schedules it: for requests and clients it does not exist */
    const char *period;  /* NULL: not periodic */
    const char *retries; /* policy of base/schedule.h; NULL: the setting task_retries */
    const char *module;  /* its module; NULL: built in */
};

struct operation {
    const char *name;
    enum right right;
    /* Before the tries, once, without a transaction: receives what takes long.  NULL: there is nothing.  The
     * tries share what it leaves in attempt->kept. */
    enum fault (*prepare)(struct attempt *attempt);
    /* Reads and changes documents; appends one JSON value, or nothing, to reply->body. */
    enum fault (*work)(struct attempt *attempt);
    /* After the validation; may be NULL.  Depends only on the call, the version, the body that work left from
     * `out` on, which it completes or replaces, and the versions of the work's documents
     * (operation/sync/versions_after.h): a stored answer passes through it again. */
    enum fault (*afterwork)(struct attempt *attempt);
    /* Could work accept the call's param?  Reads no document; NULL: only work can decide. */
    enum fault (*check)(struct attempt *attempt);
    bool is_bare;    /* the answer is exactly what work leaves: no envelope, no synchronisation */
    bool only_reads; /* even under a right that is not about reading */
    /* Does this call change nothing at all, as if the operation were safe?  NULL: it may change something,
     * unless is_safe. */
    bool (*is_look)(const struct call *call);
    /* How old, in seconds, all that it returns for this call may be; NULL: 0. */
    int64_t (*find_age)(const struct call *call);
    bool is_safe;     /* changes nothing at all, not even subscriptions or tasks: GET and HEAD may call it */
    bool obeys_rules; /* may be called where rules decide, since its work applies them (judge.h) */
    bool is_of_z;     /* anybody may call it in z, if z has accounts: administrators sign in there */
    bool is_secret;   /* neither its param nor its answer is ever stored: no Idempotency-Key is accepted */
    bool is_for_workers; /* external workers call it, with the key of a queue, too */
    bool may_grant;      /* its work may grant documents to be synchronised beside it (sync.h) */
    /* The quota that the call uses beside those of requests and writes: its kind (model/quotas.h); -1: none.
     * NULL: none. */
    int (*quota)(const struct call *call);
    int64_t limit_s; /* 0: limit_operation_s */
    struct task_traits task;
    const void *application; /* a module's own; NULL: built in */
};

#endif
