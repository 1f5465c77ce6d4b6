/* store: documents in PostgreSQL.  A worker's sessions, one per namespace, opened on first use; loading;
 * the commit of an operation in one round trip (commit.md).  Independent of caches and slot stamps. */
#ifndef STAMPD_STORE_STORE_H
#define STAMPD_STORE_STORE_H

#include "base/arena.h"
#include "base/fault.h"
#include "base/settings.h"
#include "model/copies.h"
#include "model/document.h"
#include "model/draft.h"
#include "model/schema.h"
#include "model/search.h"
#include "model/task.h"
#include "segment/segment.h"

struct store;

struct store *store_create(const struct settings *settings, struct segment *segment);
void store_destroy(struct store *store);

/* Opens a session for the namespace unless there is one; returns FAULT_XAWAY at once during the backoff
 * after failures. */
MUST_USE enum fault store_connect(struct store *store, int ns);
/* For the present request: a session for `ns` is not opened if that would close one used recently;
 * FAULT_ELSEWHERE then.  A commit opens its session before it does anything else. */
void store_set_visitor(struct store *store, int ns);
void store_clear_visitor(struct store *store);
/* For the present request, whose caller is not an administrator: all its searches, lists and pages of
 * collections together take at most limit_read_ms, and no more workers run them than its namespace and its
 * client (0: any) may use.  Until store_clear_reader. */
void store_set_reader(struct store *store, uint64_t client);
void store_clear_reader(struct store *store);
/* The limit that caused this fault of a long read, and its value; NULL: none. */
const char *store_reading_refused(const struct store *store, enum fault fault, int64_t *value_r);
/* Closes the session of the namespace and opens another: returns FAULT_NONE only when the old backend is
 * gone.  Tries for `patience_ms`. */
MUST_USE enum fault store_reconnect(struct store *store, int ns, int64_t patience_ms);

/* Loads a document: one statement, one snapshot. `copy` (may be NULL) is a cached copy: if it is of the
 * same incarnation, only newer items are read and merged.  An absent document yields a snapshot that marks
 * it absent. */
struct load {
    struct bytes class, id;
    struct document *copy;     /* borrowed, may be NULL */
    struct document *document; /* out: one reference, the caller's */
};
MUST_USE enum fault store_load(struct store *store, int ns, struct arena *arena, struct load *load);
/* Several in one round trip (each its own snapshot).  All or nothing. */
MUST_USE enum fault store_load_many(struct store *store, int ns, struct arena *arena, struct load *loads,
                                    size_t count);
/* The same in order and in rounds, until the loaded documents take `bytes_most` of memory or more: at least
 * the first, whatever its size.  The others get no document.  The data loaded in excess is bounded too. */
MUST_USE enum fault store_load_part(struct store *store, int ns, struct arena *arena, struct load *loads,
                                    size_t count, size_t bytes_most);

/* A REPEATABLE READ transaction: loads between begin and end are of one instant.  Call end after a fault,
 * too. */
MUST_USE enum fault store_snapshot_begin(struct store *store, int ns);
void store_snapshot_end(struct store *store, int ns);

/* The schema applied in the namespace, as cached by this process; held until the arena's reset.  A commit
 * or a search prepared under a schema that has changed since returns FAULT_STALE. */
MUST_USE enum fault store_schema(struct store *store, int ns, struct arena *arena,
                                 const struct schema **schema_r);

/* Sets the document's `until` by the schema under which the last commit was prepared; false: it is
 * unknown. */
MUST_USE bool store_judge_expiry(struct store *store, int ns, struct document *document);

/* Called before a refusal because of this schema: FAULT_STALE if the namespace has another one now. */
MUST_USE enum fault store_confirm_schema(struct store *store, int ns, struct arena *arena,
                                         const struct schema *schema);

/* A page of search results, true at one instant.  FAULT_STALE: the schema has changed since the search was
 * prepared. */
struct search_found {
    struct bytes id;
    struct item item; /* with wants_items */
};
struct search_page {
    const struct search_found *found;
    size_t count;
    bool has_more;
};
MUST_USE enum fault store_search(struct store *store, int ns, struct arena *arena,
                                 const struct search *search, struct search_page *page_r);

/* A read-only select of an application. */
struct selection {
    const char *sql;            /* its parameters, $1…, have type text */
    const struct bytes *values; /* of the parameters; data NULL: null */
    size_t count;
    size_t bytes;       /* of the answer, at most */
    int32_t rows;       /* at most; more are left out */
    int64_t timeout_ms; /* at most statement_timeout_ms; 0 or less: FAULT_XTIME at once */
};
/* Its rows: a JSON array of objects; NO_BYTES: they are too large.  FAULT_AARG: a value does not have the
 * type to which the select converts it. */
MUST_USE enum fault store_select(struct store *store, int ns, struct arena *arena,
                                 const struct selection *selection, struct bytes *rows_r);

/* What one operation writes and verifies; no document twice. */
struct commit_document {
    const struct document *base; /* as read; its version (a zombie's too, 0: no row) is verified */
    enum draft_act act;
    struct draft_rows rows; /* act READ: unused */
    bool moved;             /* out, when REFUSED with FAULT_STALE: the database has another version */
};
/* The answer to a request with an Idempotency-Key, a row of the table `idempotency`. */
struct idempotency {
    struct bytes account, key; /* its name; account may be empty */
    struct bytes digest;       /* of the request */
    struct bytes mime, answer; /* the result of work */
    int64_t version;           /* of the commit; 0: nothing was changed */
    struct bytes standings;    /* of its documents: operation/standing.h; may be empty */
    int64_t now;               /* time of the request, from which the age of answers is counted */
    int64_t made;              /* when the key was created; 0: unknown */
};
/* Finds the answer stored under `account` and `key`, unless it is older than idempotency_s; fills in the
 * rest. */
MUST_USE enum fault store_idempotency_find(struct store *store, int ns, struct arena *arena,
                                           struct idempotency *idempotency, bool *found_r);

/* Age at which rows are purged.  It exceeds idempotency_s: a request that was judged by them a moment ago
 * may still read them, or be about to write. */
int64_t store_idempotency_purge_s(const struct settings *settings);

/* The subscriptions that a commit matches (subscriptions.md). */
struct matched_definition {
    struct bytes text; /* as written by the session */
    int64_t version;   /* of a commit that matched it */
};
struct match {
    struct bytes own; /* the caller's session, informed by the answer; NO_BYTES: none */
    /* Out, if documents were written and there is an own session, or sessions are woken: */
    bool is_known;
    bool has_own; /* it has a subscription, of which these definitions matched */
    struct matched_definition *definitions;
    size_t count;
    struct task *woken; /* tasks created for others: id, operation, queue, start */
    size_t woken_count;
};

enum { COMMIT_REFUSED_PARTS = 3 };
struct commit {
    int64_t version;
    struct commit_document *documents;
    size_t count;
    const struct idempotency *idempotency; /* stored by this commit; NULL: none */
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
    struct copy_notes notes; /* items whose copies are due by this commit */
    /* Copies to write, in a commit without documents; NULL: none.  Targets that are gone, or already have a
     * newer copy, stay as they are. */
    const struct copy_batch *copies;
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
MUST_USE enum fault store_verify(struct store *store, int ns, struct arena *arena, struct commit *commit);

/* Headers of living documents of a class in the order of ids, above `cursor`, whose id starts with `prefix`
 * and whose version is above `after`.  Reads a bounded number of rows: `more_r` is where to continue
 * (NO_BYTES: the end). */
struct list_query {
    struct bytes class, prefix, cursor; /* empty: from the start */
    int64_t after;
    int64_t minute; /* the present: expired documents are omitted */
    int32_t limit;
};
MUST_USE enum fault store_list(struct store *store, int ns, struct arena *arena,
                               const struct list_query *query, struct header **headers_r, size_t *count_r,
                               struct bytes *more_r);

/* A page of a collection, in the order in which its members changed; true at one instant. */
struct collection_query {
    struct arena *arena;
    struct bytes class, name, value;
    int64_t transaction; /* changes written by it after `id`, and all changes written later */
    struct bytes id;
    bool with_departures;
    int64_t since, minute; /* `ended` lists those that expired after the one, up to the other */
    int32_t limit;
};
enum { COLLECTION_ENDED_MOST = 1000 };
struct collection_member {
    struct bytes id;
    int64_t version;     /* of the document, when it last changed or left */
    int64_t transaction; /* that wrote this */
    bool has_left;
};
struct collection_page {
    int64_t life;    /* transaction numbers are meaningful only within one life of the database */
    int64_t number;  /* of the declaration; 0: none */
    bool is_ready;   /* it has been filled */
    int64_t floor;   /* departures of this transaction and earlier ones may have been purged */
    int64_t horizon; /* all transactions before this one have ended, and this page covers them */
    int64_t next;    /* no transaction from this one on has begun */
    struct collection_member *members; /* an expired one has left */
    size_t count;
    bool has_more;
    struct collection_member *ended;
    size_t ended_count;
    bool has_ended_more; /* than COLLECTION_ENDED_MOST */
};
MUST_USE enum fault store_collection(struct store *store, int ns, const struct collection_query *query,
                                     struct collection_page *page_r);

/* All members of a collection, with their documents, in memory for the largest item only: they are streamed
 * as the database sends them, and are of one instant, that of `page_r`.  Send no other query to the
 * namespace meanwhile. */
struct collection_stream;
struct collection_row {
    bool is_first; /* of its member */
    struct bytes id;
    int64_t version;      /* of the document */
    int64_t ctime, dtime; /* with documents */
    struct item item;     /* one item of the document; no class: it has none */
};
/* Of the query: arena, class, name, value, minute. `stream_r` is NULL if there is no such collection, or it
 * is not ready. */
MUST_USE enum fault store_stream_begin(struct store *store, int ns, const struct collection_query *query,
                                       bool with_documents, int64_t deadline_ms,
                                       struct collection_page *page_r, struct collection_stream **stream_r);
/* The row is valid until the next call; NULL: the end. */
MUST_USE enum fault store_stream_next(struct collection_stream *stream, const struct collection_row **row_r);
/* Also allowed before the end, but then closes the session. */
void store_stream_end(struct collection_stream *stream);

/* The first items of the document whose copies are due, with their present states: class and id of the
 * batch are input, its sources are filled in.  At most `limit`. */
MUST_USE enum fault store_read_copies(struct store *store, int ns, struct arena *arena,
                                      const struct schema *schema, struct copy_batch *batch, size_t limit);
/* Fills in the targets after `after`, at most `limit`, and flags the sources that have no others. `last_r`:
 * the last target; no class: these are all. */
MUST_USE enum fault store_find_copies(struct store *store, int ns, struct arena *arena,
                                      struct copy_batch *batch, const struct copy_place *after, size_t limit,
                                      struct copy_place *last_r);

/* The first `limit` classes above `cursor` (empty: from the start) that have documents or zombies, in
 * order. */
MUST_USE enum fault store_classes(struct store *store, int ns, struct arena *arena, struct bytes cursor,
                                  int32_t limit, struct bytes **classes_r, size_t *count_r);

#endif
