/* collection_request: what a call of `collection` asks for, and its place in a synchronisation. */
#ifndef STAMPD_OPERATION_COLLECTIONS_COLLECTION_REQUEST_H
#define STAMPD_OPERATION_COLLECTIONS_COLLECTION_REQUEST_H

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
    bool is_judged;                             /* rules apply to the caller */
    bool expires;                               /* documents of the class may expire */
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

#endif
