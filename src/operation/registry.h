/* registry: the operations by name; and what an operation is given. */
#ifndef STAMPD_OPERATION_REGISTRY_H
#define STAMPD_OPERATION_REGISTRY_H

#include "document/documents.h"
#include "operation/call.h"
#include "operation/operation.h"

/* One try of one operation. */
struct attempt {
    const struct operation *operation;
    struct worker_context *worker_context;
    struct call *call;
    struct reply *reply;
    struct transaction *transaction;
    int ns;
    const struct schema *schema; /* of this try, see classes_schema; NULL: not asked for */
    int64_t version;             /* in afterwork: of the commit; 0: nothing was written */
    struct standing *standings;  /* in afterwork: how its documents stand (operation/standing.h) */
    size_t standing_count;
    size_t out;                 /* where the operation's own part of reply->body begins */
    bool is_final;              /* a task that said that it is not to be tried again */
    const struct grant *grants; /* of this try: operation/sync.h */
    int64_t retry_after_s;      /* a task that fails is not to be tried again sooner; 0: as settings say */
};

/* What it takes to run an operation: the access that the namespace gives to reading or writing, nothing but
 * an open namespace, or the administrator's key. */
enum right { RIGHT_READ, RIGHT_WRITE, RIGHT_PUBLIC, RIGHT_ADMIN };

/* What an operation is as a task; all zero: the usual. */
struct task_traits {
    int queue;
    int batch;       /* most that share a commit; 0: 1 */
    int64_t limit_s; /* 0: limit_task_s */
    bool is_never_retried, may_clients_schedule;
    const char *period; /* NULL: it is not periodic */
    const char *module; /* whose it is; NULL: built in */
};

struct operation {
    const char *name;
    enum right right;
    /* Reads and changes documents; appends one JSON value, or nothing, to reply->body. */
    enum fault (*work)(struct attempt *attempt);
    /* After the validation; may be NULL.  A function of the call, the version and what work left in the body
     * from `out` on, which it completes or replaces, and of how the documents of the work stand
     * (operation/standing.h): an answer that is remembered goes through it again. */
    enum fault (*afterwork)(struct attempt *attempt);
    /* Is the call's param one that work could take?  Reads no document; NULL: only work knows. */
    enum fault (*check)(struct attempt *attempt);
    bool is_bare;    /* the answer is what work leaves: no envelope, no synchronisation */
    bool only_reads; /* also under a right that is not about reading */
    bool
        is_safe; /* changes nothing at all, no subscription and no task either: GET and HEAD may ask for it */
    bool may_grant;  /* documents may be synchronised beside it that its work grants (operation/sync.h) */
    int64_t limit_s; /* 0: limit_operation_s */
    struct task_traits task;
    const void *application; /* a module's own; NULL: built in */
};

const struct operation *registry_find(struct bytes name);
const struct operation *registry_get_resource(enum resource_act act);
/* Adds a module's operation, borrowed for good; false when the name is taken. */
MUST_USE bool registry_add(const struct operation *operation);
/* The operation number `place` of those that are built in, NULL from the end on. */
const struct operation *registry_get_builtin(size_t place);
/* The same of all, and of those that modules bring. */
const struct operation *registry_get(size_t place);
const struct operation *registry_get_added(size_t place);

#endif
