/* collection_kept: streams of collections, whole and compressed, for as long as nothing changes in them.
 *
 * The first caller of a large collection has its stream compressed once, for itself and for a file beside the
 * segment.  The file has the stamp of the class as it was seen before the query (freshness.md, Classes).
 * While the slot of the class has this stamp and no mark, and the schema its number, a query would return the
 * same, and all workers of the host answer from the file.  A caller that comes while the file is made waits
 * for it.
 *
 * Only for callers that are not judged, of classes whose documents do not expire, of namespaces that are not
 * encrypted, with hosts = one.  All files together, those that are being made included, have at most
 * kept_streams_mb; the one that was not used for the longest time gives way. */
#ifndef STAMPD_OPERATION_COLLECTIONS_COLLECTION_KEPT_H
#define STAMPD_OPERATION_COLLECTIONS_COLLECTION_KEPT_H

#include "operation/collections/collection.h"

struct collection_kept; /* the folder, as one process uses it */
struct kept_stream;     /* a stream; ends with the request */

/* NULL: kept_streams_mb is 0, or there can be no such folder, which is logged. */
struct collection_kept *collection_kept_create(const struct settings *settings);
void collection_kept_destroy(struct collection_kept *kept); /* NULL is allowed */
/* By the master, while it has no workers: the files of former ones are of no use. */
void collection_kept_clear(const struct settings *settings);

/* What to do for a caller. */
enum collection_kept_state {
    COLLECTION_KEPT_NOT,   /* query the database, and keep nothing; there is no stream */
    COLLECTION_KEPT_WHOLE, /* send what collection_kept_read returns */
    COLLECTION_KEPT_BEGUN, /* query the database, from now on, and give all of it to collection_kept_add */
};
/* Waits while another process is about to keep the same.  FAULT_XBUSY: the share of workers that may wait is
 * used up. */
MUST_USE enum fault collection_kept_find(struct attempt *attempt, const struct collection_request *request,
                                         enum collection_kept_state *state_r, struct kept_stream **stream_r);

/* Of COLLECTION_KEPT_WHOLE: appends the next piece, compressed; none at the end.  False: it cannot be read.
 */
MUST_USE bool collection_kept_read(struct kept_stream *stream, struct builder *packed_r);

/* Of COLLECTION_KEPT_BEGUN: appends to `packed_r` what is ready of the compressed text, and keeps it.  With
 * the last piece others may have the file. */
void collection_kept_add(struct kept_stream *stream, struct bytes text, bool is_last,
                         struct builder *packed_r);
/* Instead, before the first piece: the stream is too small to be worth it, until something changes. */
void collection_kept_decline(struct kept_stream *stream);

#endif
