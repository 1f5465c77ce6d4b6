/* store_commit: the commit of an operation, in one round trip (doc/explanation/commit.md). */
#ifndef STAMPD_STORE_DOCUMENTS_STORE_COMMIT_H
#define STAMPD_STORE_DOCUMENTS_STORE_COMMIT_H

#include "model/document/copies.h"
#include "model/document/document.h"
#include "model/document/draft.h"
#include "model/task/task.h"
#include "store/store.h"
#include "store/documents/store_idempotency.h"
#include "store/tasks/store_spool.h"

/* What one operation writes and verifies; no document twice. */
struct commit_document {
    const struct document *base; /* as read; its version (a zombie's too, 0: no row) is verified */
    enum draft_act act;
    struct draft_rows rows; /* act READ: unused */
    bool moved;             /* out, when REFUSED with FAULT_STALE: the database has another version */
};

/* The subscriptions that a commit matches (subscriptions.md). */
/* Who uses a subscription: it is the account's that declared it. */
struct subscription_caller {
    bool is_administrator;
    bool is_ruled;           /* access rules decide what it may know */
    struct bytes account;    /* NO_BYTES: nobody has signed in */
    struct bytes credential; /* the key of its item Sess, or a token (stored_caller.h); NO_BYTES: none */
};

enum match_kind {
    MATCH_WRITTEN,  /* of a document that was written or deleted */
    MATCH_DEPARTED, /* of a member of a collection whose relation to the account has ended */
    MATCH_SIGHT,    /* none: the roles of the account may have changed, or its membership in a team */
};
struct matched_definition {
    struct bytes text; /* as written by the session */
    int64_t version;   /* of a commit that matched it */
    struct bytes id;   /* of a document that was written; empty: not noted */
    enum match_kind kind;
    int64_t transaction; /* of that commit; 0: the one that is being answered */
};
struct match {
    struct subscription_caller caller; /* of the request */
    struct bytes own;                  /* the caller's session, informed by the answer; NO_BYTES: none */
    /* Out, if documents were written and there is an own session, or sessions are woken: */
    bool is_known;
    bool has_own; /* it has a subscription, of which these definitions matched */
    struct matched_definition *definitions;
    size_t count;
    struct task *woken; /* tasks created for others: id, operation, queue, start */
    size_t woken_count;
};

/* Tasks of clients that are not done: of the address, the account, and all; 0: no limit. */
struct task_quotas {
    int64_t of_address, of_account, of_namespace;
};

enum { COMMIT_REFUSED_PARTS = 3 };
struct commit {
    int64_t version;
    struct commit_document *documents;
    size_t count;
    const struct idempotency *idempotency; /* stored by this commit; NULL: none */
    const struct spool_batch *spool;       /* records whose tasks it creates; NULL: none */
    /* Tasks to create, none twice for a resource; if a task already waits for the resource, they get its
     * id, start, priority and attempt. */
    struct task *tasks;
    size_t task_count;
    /* The operations run these tasks, which end with this commit, or, with a checkpoint (one task only),
     * continue. */
    struct task_fence *fences;
    size_t fence_count;
    struct bytes checkpoint; /* NO_BYTES: the end */
    int64_t stop;            /* stamp of the end */
    /* Tasks to cancel, before others are created; never those of the fences. */
    const struct task_cancel *cancels;
    size_t cancel_count;
    struct copy_notes notes; /* items whose copies are due by this commit */
    /* Copies to write, in a commit without documents; NULL: none.  Targets that are gone, or already have a
     * newer copy, stay as they are. */
    const struct copy_batch *copies;
    struct task_quotas task_quotas; /* if it creates a task of a client */
    int64_t account_bytes_most;     /* of each account whose documents grow; 0: no limit */
    struct bytes account;           /* of the caller; NO_BYTES: none */
    struct match match;
    struct task next; /* out: a due task of the domain of a fence; no id: none */
    /* out, with FAULT_AUNIQUE and FAULT_AFIXED: unique property or collection, class and id of the document
     */
    struct bytes refused[COMMIT_REFUSED_PARTS];
};
enum commit_outcome { COMMIT_DONE, COMMIT_REFUSED, COMMIT_UNKNOWN };
/* REFUSED: `fault_r` is FAULT_STALE (moved documents are flagged; all if it is unknown which; none if an
 * answer is already stored under the name of `idempotency`), FAULT_FENCED (a task no longer belongs to this
 * attempt: its fence is flagged), or the reason of the database.  UNKNOWN: the session is closed;
 * store_reconnect ensures that its backend is gone. */
enum commit_outcome store_commit(struct store *store, int ns, struct arena *arena, struct commit *commit,
                                 enum fault *fault_r);

/* Verifies versions only (hosts = many): FAULT_STALE and flags if some have moved. */
MUST_USE enum fault store_commit_verify(struct store *store, int ns, struct arena *arena,
                                        struct commit *commit);

#endif
