/* collection: shared by the two forms of the operation: pages (collection.c) and a stream. */
#ifndef STAMPD_OPERATION_BUILTIN_COLLECTION_H
#define STAMPD_OPERATION_BUILTIN_COLLECTION_H

#include "operation/reader.h"
#include "operation/attempt.h"
#include "store/store_collection.h"

/* The position of a synchronisation. */
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

struct asked {
    struct bytes class, name, value, question, secret;
    bool wants_ids, is_stream;
    int64_t limit;
    struct collection_position place;
};

MUST_USE enum fault collection_read(struct attempt *attempt, const struct reader *reader,
                                    struct asked *asked);
/* Does the collection exist, and is it ready?  Otherwise the reply has the fault. */
MUST_USE enum fault collection_judge(const struct reader *reader, const struct asked *asked,
                                     const struct collection_page *page);
/* The synchronisation begins with this page. */
void collection_begin(struct collection_position *place, const struct collection_page *page, int64_t minute);
/* Appends `"token":"…"`. */
void collection_write_token(const struct call *call, const struct asked *asked, struct builder *body);

/* Afterwork: sends the whole collection when a stream was requested. */
enum fault collection_stream(struct attempt *attempt);

#endif
