/* documents: the single entry point of operations to cache, stamps and store.
 *
 * struct documents lives as long as the worker. struct transaction is one try of an operation: the
 * documents that it requested, its changes, and their validation (freshness.md). */
#ifndef STAMPD_DOCUMENT_DOCUMENTS_H
#define STAMPD_DOCUMENT_DOCUMENTS_H

#include "base/arena.h"
#include "base/fault.h"
#include "base/settings.h"
#include "model/document/document.h"
#include "model/document/draft.h"
#include "segment/segment.h"
#include "store/store.h"
#include "store/documents/store_commit.h"
#include "store/documents/store_idempotency.h"

struct documents;

struct documents *documents_create(const struct settings *settings, struct segment *segment);
void documents_destroy(struct documents *documents);
/* Evicts what is too old; called periodically. */
void documents_rest(struct documents *documents);
/* Called before each request: reads the clock once for all uses; after `deadline_ms` (monotonic), loads
 * return FAULT_XTIME. */
void documents_begin_request(struct documents *documents, int64_t deadline_ms);
/* The outcome of a commit is unknown and its database stays unreachable: this process must exit after its
 * answer; its recovery process continues (freshness.md 2, the last line of commit). */
bool documents_must_exit(const struct documents *documents);
struct store *documents_store(struct documents *documents);
/* Of standbys; NULL: none is read. */
struct store *documents_replica(struct documents *documents);
/* Index of a database; -1: the table of the segment is full. */
int documents_ns(struct documents *documents, struct bytes database);

/* The name of a document. */
struct document_name {
    struct bytes class, id;
};

/* The newest copies, each by itself (synchronisation, configuration).  Those proven by the shared segment
 * need no database call; all others are loaded in as few round trips as possible.  The arena holds the
 * documents until its reset. */
MUST_USE enum fault documents_newest(struct documents *documents, int ns, struct arena *arena,
                                     const struct document_name *names, size_t count,
                                     const struct document **documents_r);
/* The same, but once the loaded documents take `bytes_most` of memory, the others stay NULL; documents are
 * loaded from the database in the order of the names.  A duplicate name yields the same object. */
MUST_USE enum fault documents_newest_part(struct documents *documents, int ns, struct arena *arena,
                                          const struct document_name *names, size_t count, size_t bytes_most,
                                          const struct document **documents_r);
/* The database has a newer version than documents_newest has returned, by psql, and the notification has not
 * arrived yet: the next call loads it. */
void documents_expect_newer(struct documents *documents, int ns, const struct document_name *name);

/* A copy at most `tolerance_s` (1 or more) old, from the cache or loaded; held as those of documents_newest.
 */
MUST_USE enum fault documents_tolerated(struct documents *documents, int ns, struct arena *arena,
                                        struct document_name name, int64_t tolerance_s,
                                        const struct document **document_r);

/* From the cache alone: a copy that the database has returned or verified at most `age_s` ago, and of which
 * no change is known here; held as those of documents_newest.  False: there is none. */
MUST_USE bool documents_find_unmoved(struct documents *documents, int ns, struct arena *arena,
                                     struct document_name name, int64_t age_s,
                                     const struct document **document_r);

/* Proof that a document of documents_newest is the newest; it can be checked again without a search. */
struct newest_proof {
    bool is_valid; /* false: only a new search proves the document */
    uint32_t slot;
    uint64_t tag;
};
/* documents_newest, and the proofs. */
MUST_USE enum fault documents_newest_proven(struct documents *documents, int ns, struct arena *arena,
                                            const struct document_name *names, size_t count,
                                            const struct document **documents_r,
                                            struct newest_proof *proofs_r);
/* The same of all documents of a class: of what the caller reads from the database after this call, outside
 * of a snapshot. */
MUST_USE struct newest_proof documents_prove_class(const struct documents *documents, int ns,
                                                   struct bytes class);
/* Is the document, which the caller has kept, still the newest?  It is if nothing was committed in its slot.
 */
MUST_USE bool documents_is_still_newest(const struct documents *documents, const struct newest_proof *proof);
/* Is no change of it known here?  With other hosts that proves nothing. */
MUST_USE bool documents_is_unmoved(const struct documents *documents, const struct newest_proof *proof);

#endif
