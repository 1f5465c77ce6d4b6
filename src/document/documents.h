/* documents: the one door through which operations reach cache, stamps and store.
 *
 * struct documents lives as long as the worker.  struct transaction is one try of an operation: the documents
 * it asked for, what it changed, and their validation (doc/freshness.md; seed 000, "Cohérence
 * temporelle entre documents"). */
#ifndef STAMPD_DOCUMENT_DOCUMENTS_H
#define STAMPD_DOCUMENT_DOCUMENTS_H

#include "base/arena.h"
#include "base/fault.h"
#include "base/settings.h"
#include "model/document.h"
#include "model/draft.h"
#include "segment/segment.h"
#include "store/store.h"

struct documents;

struct documents *documents_create(const struct settings *settings, struct segment *segment);
void documents_destroy(struct documents *documents);
/* Now and then: drops what grew old. */
void documents_rest(struct documents *documents);
/* Before each request: reads the clock once for all; after `deadline_ms` (monotonic) nothing is loaded:
 * FAULT_XTIME. */
void documents_begin_request(struct documents *documents, int64_t deadline_ms);
/* The outcome of a commit is unknown and its database stays away: this process must end after its answer; its
 * recovery process goes on (freshness.md 2, the last line of commit). */
bool documents_must_exit(const struct documents *documents);
struct store *documents_store(struct documents *documents);
/* Index of a database; -1 when the table of the segment is full. */
int documents_ns(struct documents *documents, struct bytes database);

/* What a document is asked by. */
struct name {
    struct bytes class, id;
};

/* The newest copies, each by itself (synchronisation, configuration).  No database call for those that the
 * shared segment proves; all others are loaded in as few round trips as possible.  The arena holds the
 * documents until its reset. */
MUST_USE enum fault documents_newest(struct documents *documents, int ns, struct arena *arena,
                                     const struct name *names, size_t count,
                                     const struct document **documents_r);
/* The same, but when those that are loaded take `bytes_most` of memory, the others stay NULL: what the
 * database has to be asked for is loaded in the order of the names.  A name that stands there twice is one
 * object. */
MUST_USE enum fault documents_newest_part(struct documents *documents, int ns, struct arena *arena,
                                          const struct name *names, size_t count, size_t bytes_most,
                                          const struct document **documents_r);

/* --- one try of an operation --- */
struct transaction;

/* `in_snapshot`: every document is read in one REPEATABLE READ transaction (after validations in shared
 * memory have failed): what it sees was true at one instant, whatever others write. */
MUST_USE enum fault transaction_begin(struct documents *documents, int ns, struct arena *arena,
                                      bool in_snapshot, struct transaction **transaction_r);
/* This try may write: documents that operations of this worker have written lately are fetched in turn with
 * other writers of this host, so that they do not refuse each other; until the end of the try. */
void transaction_take_turns(struct transaction *transaction);
/* Tolerance 0: the newest, one object for the whole operation, may be changed, verified at validation.
 * FAULT_ALIMIT above limit_documents. */
MUST_USE enum fault transaction_fetch(struct transaction *transaction, struct name name,
                                      struct draft **draft_r);
/* The same for a list: what is missing is loaded in one round trip. */
MUST_USE enum fault transaction_fetch_many(struct transaction *transaction, const struct name *names,
                                           size_t count, struct draft **drafts_r);
/* From now on FAULT_ALIMIT when those that one of the two has to load take more memory. */
void transaction_limit_bytes(struct transaction *transaction, size_t bytes_most);
/* Tolerance above 0: a copy at most that old, for reading.  The same document asked at 0 later is promoted
 * when the copy is still the newest (else FAULT_STALE: the operation runs again); one asked at 0 before stays
 * that. */
MUST_USE enum fault transaction_read(struct transaction *transaction, struct name name, int64_t tolerance_s,
                                     const struct document **document_r);
/* The validation keeps this answer in its commit, which is then made also when no document changed;
 * once->version is that of the commit.  `once` is borrowed until then.  FAULT_STALE of the validation may now
 * mean that an answer is kept under this name already. */
void transaction_keep(struct transaction *transaction, const struct idempotency *idempotency);
/* The commit creates this task, or joins it with one scheduled before for its resource; it is then made also
 * when no document changed. */
void transaction_schedule(struct transaction *transaction, const struct task *task);
/* What was scheduled; after the validation with the names and starts that it got. */
const struct task *transaction_tasks(const struct transaction *transaction, size_t *count_r);
/* The operations are these tasks: the commit ends them, or is refused with FAULT_FENCED.  `fences` is
 * borrowed. */
void transaction_fence(struct transaction *transaction, struct task_fence *fences, size_t count);
/* The commit does not end its task but keeps this JSON text in it; NO_BYTES: it ends it. */
void transaction_set_checkpoint(struct transaction *transaction, struct bytes checkpoint);
struct bytes transaction_checkpoint(const struct transaction *transaction);
/* The commit writes these copies; the operation asks for no documents.  `batch` is borrowed. */
void transaction_copy(struct transaction *transaction, const struct copy_batch *batch);
/* After a validation that ended a task with a domain: the domain's next one; no id: none is due. */
const struct task *transaction_next_task(const struct transaction *transaction);
/* The caller's session: a commit of documents finds out which of its definitions it touches. */
void transaction_name_session(struct transaction *transaction, struct bytes session);
/* After the validation: what the commit has touched. */
const struct match *transaction_match(const struct transaction *transaction);
/* Validates: writes what changed and verifies the rest in one commit, or, when nothing changed, verifies in
 * shared memory alone.  FAULT_STALE: run again.  FAULT_XUNKNOWN: unless documents_must_exit, it is settled:
 * what the database now says stays.  version_r: that of the commit, 0 when no document was written. */
MUST_USE enum fault transaction_validate(struct transaction *transaction, int64_t *version_r);
/* How a document that the try fetched stands after its commit. */
struct standing {
    struct name name;
    int64_t version; /* 0: it does not exist */
    bool is_written; /* the version is that of the commit, which is not known yet: `version` is 0 */
};
/* After the last change: all that were fetched, in the order in which they were asked for.  Contents of older
 * releases become those of the newest here, so that what is no change then is none. */
MUST_USE enum fault transaction_stand(struct transaction *transaction, struct standing **standings_r,
                                      size_t *count_r);
/* After FAULT_AUNIQUE or FAULT_AFIXED: the unique property or collection, the class and the id of the
 * document; ended by NULL, or by what is not known. */
void transaction_refused(const struct transaction *transaction,
                         const char *parts_r[COMMIT_REFUSED_PARTS + 1]);
/* Ends the try, validated or not. */
void transaction_end(struct transaction *transaction);

#endif
