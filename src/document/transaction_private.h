/* transaction_private: shared by the files of a transaction. */
#ifndef STAMPD_DOCUMENT_TRANSACTION_PRIVATE_H
#define STAMPD_DOCUMENT_TRANSACTION_PRIVATE_H

#include "document/documents_private.h"
#include "store/documents/store_commit.h"
#include "store/documents/store_idempotency.h"
#include "store/tasks/store_spool.h"
#include "document/transaction.h"

/* A document that the operation requested. */
struct transaction_entry {
    struct found found;
    struct draft *draft; /* NULL: requested with a tolerance, read-only */
    bool is_counted;     /* in limit_documents: it was fetched, not only consulted */
};

struct transaction {
    struct documents *documents;
    struct arena *arena;
    int ns;
    uint64_t drops; /* lineage_drops at its begin: what was read is of one history */
    bool in_snapshot;
    bool is_as_database; /* transaction_require_database */
    struct transaction_entry *entries;
    size_t count, capacity;
    size_t fetched;                        /* those at tolerance 0, consulted ones too */
    size_t counted;                        /* of them those that count in limit_documents */
    size_t bytes_most;                     /* memory of those that are loaded together; 0: no limit */
    const struct idempotency *idempotency; /* NULL: no answer is to be stored */
    const struct spool_batch *spool;       /* records whose names are to be stored; NULL: none */
    struct writer_queue *writer_queue;     /* NULL: no turns are taken */
    struct task *tasks;                    /* to be created */
    size_t task_count, task_capacity;
    struct task_cancel *cancels; /* to be cancelled */
    size_t cancel_count, cancel_capacity;
    struct task_fence *fences; /* to be ended */
    size_t fence_count;
    struct bytes checkpoint;
    const struct copy_batch *copies; /* to be written; NULL: none */
    struct task next;
    struct bytes session; /* of the caller; NO_BYTES: none is named */
    struct task_quotas task_quotas;
    int64_t account_bytes_most; /* 0: no limit */
    struct bytes account;       /* of the caller; NO_BYTES: none */
    struct subscription_caller caller;
    struct match match;         /* what the commit matched */
    const struct schema *stood; /* the schema of transaction_versions_after; NULL: not called */
    struct bytes refused[TRANSACTION_REFUSED_PARTS]; /* as transaction_refused returns them */
    const char *expected;
};

/* What is read from now on is the newest. */
void transaction_end_snapshot(struct transaction *transaction);

/* What the schema adds to the changes, once: contents of older releases that are about to be written are
 * migrated to the newest; thumbnails follow their images. */
void transaction_adjust(struct transaction *transaction, const struct schema *schema);

/* Counts the bytes by which the documents that a commit has written have grown (segment/counts/stored.h). */
void transaction_count(struct segment *segment, int ns, const struct commit *commit);
/* Tells the records which configurations may have changed; before anybody learns of the commit. */
void transaction_note_configurations(const struct transaction *transaction, const struct commit *commit);

/* Checks the contents that are about to be written against the schema: FAULT_ACONTENT, FAULT_ALIMIT;
 * FAULT_STALE: the namespace has another schema now. */
MUST_USE enum fault transaction_check_contents(struct transaction *transaction, const struct schema *schema);

#endif
