/* store_stream: all of a collection, as a stream. */
#ifndef STAMPD_STORE_COLLECTIONS_STORE_STREAM_H
#define STAMPD_STORE_COLLECTIONS_STORE_STREAM_H

#include "store/collections/store_collection.h"

/* All members of a collection, with their documents, in memory for the largest item only: they are streamed
 * as the database sends them, and are of one instant, that of `page_r`.  Send no other query to the
 * namespace meanwhile. */
struct store_stream;
struct store_stream_row {
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
                                       struct collection_page *page_r, struct store_stream **stream_r);
/* The row is valid until the next call; NULL: the end. */
MUST_USE enum fault store_stream_next(struct store_stream *stream, const struct store_stream_row **row_r);
/* Also allowed before the end, but then closes the session. */
void store_stream_end(struct store_stream *stream);

#endif
