/* transaction: one try of an operation: the documents that it requested, its changes, and their validation
 * (freshness.md). */
#ifndef STAMPD_DOCUMENT_TRANSACTION_H
#define STAMPD_DOCUMENT_TRANSACTION_H

#include "document/documents.h"

struct transaction;

/* `in_snapshot`: every document is read in one REPEATABLE READ transaction (after validations in shared
 * memory have failed): what it reads was true at one instant, whatever others write. */
MUST_USE enum fault transaction_begin(struct documents *documents, int ns, struct arena *arena,
                                      bool in_snapshot, struct transaction **transaction_r);
/* This try may write: until its end, documents that operations of this worker have written recently are
 * fetched through the writer queue of this host, so that writers do not conflict. */
void transaction_take_turns(struct transaction *transaction);
/* Tolerance 0: the newest, one object for the whole operation, may be changed, verified at validation.
 * FAULT_ALIMIT above limit_documents. */
MUST_USE enum fault transaction_fetch(struct transaction *transaction, struct document_name name,
                                      struct draft **draft_r);
/* The same for a list: missing documents are loaded in one round trip. */
MUST_USE enum fault transaction_fetch_many(struct transaction *transaction, const struct document_name *names,
                                           size_t count, struct draft **drafts_r);
/* A document that a decision depends on, for reading: the newest, verified at validation like those that are
 * fetched, so that the decision holds when the commit does.  It does not count in limit_documents, unless it
 * is fetched too. */
MUST_USE enum fault transaction_consult(struct transaction *transaction, struct document_name name,
                                        const struct document **document_r);
/* From now on, either fetch returns FAULT_ALIMIT if the documents that it must load take more memory. */
void transaction_limit_bytes(struct transaction *transaction, size_t bytes_most);
/* Tolerance above 0: a copy at most that old, for reading.  If the same document is fetched at 0 later, the
 * copy is promoted if it is still the newest (else FAULT_STALE: the operation runs again); a document
 * fetched at 0 before stays so. */
MUST_USE enum fault transaction_read(struct transaction *transaction, struct document_name name,
                                     int64_t tolerance_s, const struct document **document_r);
/* Is the database read as of an earlier instant? */
bool transaction_is_in_snapshot(const struct transaction *transaction);
/* The operation reads the database by statements of its own, and its answer says what the client knows of
 * that state: the validation verifies what was fetched and consulted in the database too, so that none of it
 * is older, also when another program changed it a moment ago. */
void transaction_require_database(struct transaction *transaction);
/* The newest copies, as documents_newest_part, but of the instant of the snapshot if the transaction reads in
 * one.  They are not validated: what they decide was true during this try. */
MUST_USE enum fault transaction_newest(struct transaction *transaction, const struct document_name *names,
                                       size_t count, size_t bytes_most, const struct document **documents_r);
/* The validation stores this answer in its commit, which then happens even if no document changed;
 * idempotency->version is that of the commit. `idempotency` is borrowed until then.  FAULT_STALE of the
 * validation may now mean that an answer is already stored under this name. */
void transaction_keep(struct transaction *transaction, const struct idempotency *idempotency);
/* The validation stores the names of these records in its commit.  `batch` is borrowed until then.
 * FAULT_STALE of the validation may now mean that some are already stored. */
void transaction_spool(struct transaction *transaction, const struct spool_batch *batch);
/* The commit creates this task, or merges it with one scheduled before for its resource; the commit then
 * happens even if no document changed. */
void transaction_schedule(struct transaction *transaction, const struct task *task);
/* The scheduled tasks; after the validation, with the names and starts assigned to them. */
const struct task *transaction_tasks(const struct transaction *transaction, size_t *count_r);
/* The commit cancels the tasks of the operation that wait or run for the resource, but those of its fences,
 * before it creates others, and happens even if nothing else changed. */
void transaction_cancel_task(struct transaction *transaction, const struct task_cancel *cancel);
size_t transaction_count_cancels(const struct transaction *transaction);
/* The first of the tasks that the commit ends; NULL: it ends none. */
const struct task_fence *transaction_fence_of(const struct transaction *transaction);
/* The operations run these tasks: the commit ends them, or is refused with FAULT_FENCED. `fences` is
 * borrowed. */
void transaction_fence(struct transaction *transaction, struct task_fence *fences, size_t count);
/* The commit does not end its task but stores this JSON text in it; NO_BYTES: the commit ends it. */
void transaction_set_checkpoint(struct transaction *transaction, struct bytes checkpoint);
struct bytes transaction_checkpoint(const struct transaction *transaction);
/* The commit writes these copies; the operation fetches no documents. `batch` is borrowed. */
void transaction_copy(struct transaction *transaction, const struct copy_batch *batch);
/* After a validation that ended a task with a domain: the next task of the domain; no id: none is due. */
const struct task *transaction_next_task(const struct transaction *transaction);
/* The caller's session: a commit of documents determines which of its definitions match.  Borrowed. */
struct subscription_caller;
void transaction_name_session(struct transaction *transaction, struct bytes session,
                              const struct subscription_caller *caller);
/* No account may own more bytes after the commit, unless it owned more before; needs owners that are declared
 * (store_owners.h).  `account`: the caller's, which learns the sum. */
void transaction_limit_owners(struct transaction *transaction, int64_t most, struct bytes account);
/* The commit creates a task of a client: of those that are not done, so many at most may be of its address,
 * its account, and all clients; 0: no limit. */
void transaction_limit_tasks(struct transaction *transaction, int64_t of_address, int64_t of_account,
                             int64_t of_namespace);
/* After the validation: the subscriptions that the commit matched. */
const struct match *transaction_match(const struct transaction *transaction);
/* Validates: writes what changed and verifies the rest in one commit, or, when nothing changed, verifies in
 * shared memory alone, or as transaction_require_database says.  FAULT_STALE: run again.  FAULT_XUNKNOWN:
 * unless documents_must_exit, the outcome is settled: the present state of the database is final. version_r:
 * that of the commit, 0 when no document was written. */
MUST_USE enum fault transaction_validate(struct transaction *transaction, int64_t *version_r);
/* The state, after its commit, of a document that the try fetched. */
struct version_after {
    struct document_name name;
    int64_t version; /* 0: it does not exist */
    bool is_written; /* its version is that of the commit, not known yet: `version` is 0 */
};
/* The drafts of the fetched documents, in the order of their requests: `position` is 0 for the first and
 * moves on; NULL past the last. */
const struct draft *transaction_next_draft(const struct transaction *transaction, size_t *position);
/* Called after the last change: all fetched documents, in the order of their requests.  Contents of older
 * releases are migrated to the newest here, so that a change without effect then counts as none. */
MUST_USE enum fault transaction_versions_after(struct transaction *transaction,
                                               struct version_after **versions_r, size_t *count_r);
enum { TRANSACTION_REFUSED_PARTS = 7 };
/* After FAULT_AUNIQUE or FAULT_AFIXED: the unique property or collection, the class and the id of the
 * document.  After FAULT_ACONTENT: class and id of the document, class and key of the item, the place in its
 * content, the keyword and its place in the schema; returns what is expected there, NULL after other faults.
 * The list ends with NULL, also at the first unknown part. */
const char *transaction_refused(const struct transaction *transaction,
                                const char *parts_r[TRANSACTION_REFUSED_PARTS + 1]);
/* Ends the try, validated or not. */
void transaction_end(struct transaction *transaction);

#endif
