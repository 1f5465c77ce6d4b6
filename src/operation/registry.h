/* registry: the operations by name, and the input of an operation. */
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
    const struct schema *schema; /* of this try, see classes_schema; NULL: not loaded */
    int64_t version;             /* in afterwork: of the commit; 0: nothing was written */
    struct standing *standings;  /* in afterwork: its documents' versions (operation/standing.h) */
    size_t standing_count;
    size_t out;                 /* where the operation's own part of reply->body begins */
    bool is_final;              /* the task has requested no further try */
    const struct grant *grants; /* of this try: operation/sync.h */
    int64_t retry_after_s;      /* a failed task is not retried sooner; 0: as in the settings */
};

/* Required to run an operation: the namespace's access for reading or for writing, only that the namespace is
 * open, or the administrator's key. */
enum right { RIGHT_READ, RIGHT_WRITE, RIGHT_PUBLIC, RIGHT_ADMIN };

/* The properties of an operation as a task; all zero: the defaults. */
struct task_traits {
    int queue;
    int batch;       /* most that share a commit; 0: 1 */
    int64_t limit_s; /* 0: limit_task_s */
    bool is_never_retried, may_clients_schedule;
    const char *period; /* NULL: not periodic */
    const char *module; /* its module; NULL: built in */
};

struct operation {
    const char *name;
    enum right right;
    /* Reads and changes documents; appends one JSON value, or nothing, to reply->body. */
    enum fault (*work)(struct attempt *attempt);
    /* After the validation; may be NULL.  Depends only on the call, the version, the body that work left from
     * `out` on, which it completes or replaces, and the versions of the work's documents
     * (operation/standing.h): a stored answer passes through it again. */
    enum fault (*afterwork)(struct attempt *attempt);
    /* Could work accept the call's param?  Reads no document; NULL: only work can decide. */
    enum fault (*check)(struct attempt *attempt);
    bool is_bare;    /* the answer is exactly what work leaves: no envelope, no synchronisation */
    bool only_reads; /* even under a right that is not about reading */
    bool is_safe;    /* changes nothing at all, not even subscriptions or tasks: GET and HEAD may call it */
    bool may_grant;  /* its work may grant documents to be synchronised beside it (operation/sync.h) */
    int64_t limit_s; /* 0: limit_operation_s */
    struct task_traits task;
    const void *application; /* a module's own; NULL: built in */
};

const struct operation *registry_find(struct bytes name);
const struct operation *registry_get_resource(enum resource_act act);
/* Adds a module's operation, borrowed permanently; false when the name is taken. */
MUST_USE bool registry_add(const struct operation *operation);
/* Built-in operation number `place`, NULL past the last. */
const struct operation *registry_get_builtin(size_t place);
/* The same for all operations, including those of modules. */
const struct operation *registry_get(size_t place);
const struct operation *registry_get_added(size_t place);

#endif
