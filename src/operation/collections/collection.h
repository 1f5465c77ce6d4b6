/* collection: what a call of `collection` asks for, its place in a synchronisation, and its pages. */
#ifndef STAMPD_OPERATION_COLLECTIONS_COLLECTION_H
#define STAMPD_OPERATION_COLLECTIONS_COLLECTION_H

#include "operation/attempt.h"
#include "operation/reader.h"
#include "operation/judge/sight.h"
#include "store/collections/store_collection.h"

/* Where a synchronisation stands. */
struct collection_position {
    bool is_complete; /* everything is sent, not only changes */
    bool is_first;    /* this is its first page */
    int64_t life, number;
    int64_t from;    /* changes: of this transaction and later */
    int64_t horizon; /* of the first page: where the next synchronisation begins */
    int64_t transaction;
    struct bytes id; /* the page begins after these */
    int64_t since;   /* members that expired up to this minute have been sent */
    int64_t minute;  /* of the first page: `since` of the next synchronisation */
};

struct collection_request {
    struct bytes class, name, value, secret;
    size_t value_count;                     /* `value` has so many, joined */
    struct bytes question, cursor_question; /* what tokens and cursors are signed for */
    bool wants_ids, is_stream;
    bool is_judged;      /* rules apply to the caller */
    bool is_undisclosed; /* of sight_discloses: what is declared does not matter, it is empty to the caller */
    bool expires;        /* documents of the class may expire */
    struct caller_sight sight;                  /* of the caller */
    const struct schema_collection *collection; /* its declaration; NULL: an application's, or none */
    int64_t limit;
    struct collection_position position;
};

MUST_USE enum fault collection_request_read(struct attempt *attempt, const struct reader *reader,
                                            struct collection_request *request);
/* Does the collection exist, and is it ready?  Otherwise the reply has the fault. */
MUST_USE enum fault collection_request_judge(const struct reader *reader,
                                             const struct collection_request *request,
                                             const struct collection_page *page);
/* Everything is sent, from the first page on. */
void collection_request_start_over(struct collection_request *request);
/* The synchronisation begins with this page. */
void collection_request_begin(struct collection_position *position, const struct collection_page *page,
                              int64_t minute);
/* Appends `"token":"…"`. */
void collection_request_write_token(const struct call *call, const struct collection_request *request,
                                    struct builder *body);
/* Appends `,"cursor":"…"`: the next page begins after this member. */
void collection_request_write_cursor(const struct call *call, const struct collection_request *request,
                                     const struct collection_member *last, struct builder *body);

/* --- collection page: reads the next page of a synchronisation --- */
/* If the client's state is too old, the request starts over: it is complete, and this is its first page. */
MUST_USE enum fault collection_page_read(struct attempt *attempt, const struct reader *reader,
                                         struct collection_request *request, struct collection_page *page);

/* --- collection unchanged --- */

/* Collections of which nothing has changed since a token, as this worker has read it
 * from the database.
 *
 * The database said that the collection has no change by the transaction `from` or a later one.  As long as
 * no commit has moved the slot of its class (slots.h), that holds for every token from there on, and the
 * answer needs no query.  The table has a constant size. */

struct collection_unchanged;

struct collection_unchanged *collection_unchanged_create(void) __attribute__((returns_nonnull));
void collection_unchanged_destroy(struct collection_unchanged *unchanged); /* NULL is allowed */

/* Has nothing changed since the token of the request?  Then its synchronisation has begun, and its only page
 * is empty.  `proof_r`: for collection_unchanged_note, taken before the query. */
MUST_USE bool collection_unchanged_find(const struct attempt *attempt, struct collection_request *request,
                                        struct newest_proof *proof_r);
/* Remembers the page of the request, if it is the only one and has nothing. */
void collection_unchanged_note(const struct attempt *attempt, const struct collection_request *request,
                               const struct newest_proof *proof, const struct collection_page *page);

#endif
