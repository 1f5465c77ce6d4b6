/* store_thumbnails: what a namespace's database notes of thumbnails (sql/0022_thumbnails.sql): files of which
 * none can be made, documents that are done, how far the sweep has come. */
#ifndef STAMPD_STORE_BLOBS_STORE_THUMBNAILS_H
#define STAMPD_STORE_BLOBS_STORE_THUMBNAILS_H

#include "base/arena.h"
#include "blob/blob_store.h"
#include "store/store.h"

/* Why no thumbnail can be made of these files; NO_BYTES: not known. */
MUST_USE enum fault store_thumbnails_reasons(struct store *store, int ns, struct arena *arena,
                                             const struct blob_digest *digests, size_t count,
                                             struct bytes *reasons_r);
MUST_USE enum fault store_thumbnails_refuse(struct store *store, int ns, struct arena *arena,
                                            const struct blob_digest *digest, const char *reason);

/* The document has all thumbnails that can be made, as declared by `form`, as of this version of its items P.
 */
MUST_USE enum fault store_thumbnails_note(struct store *store, int ns, struct arena *arena,
                                          struct bytes class, struct bytes id, struct bytes form,
                                          int64_t version);

struct thumbnails_page {
    struct bytes *ids;
    bool *are_due; /* thumbnails may be missing */
    size_t count;
};
/* Documents of the class with attachments, in the order of their ids, after `last`. */
MUST_USE enum fault store_thumbnails_page(struct store *store, int ns, struct arena *arena,
                                          struct bytes class, struct bytes form, struct bytes last,
                                          size_t most, struct thumbnails_page *page_r);

struct thumbnails_sweep {
    int64_t number;         /* of the schema */
    int64_t began;          /* stamp */
    struct bytes class, id; /* the document up to which it has come; class NO_BYTES: it is over */
};
/* Does the applied schema declare thumbnails, and must a sweep begin or go on?  Not while so many tasks wait.
 */
MUST_USE enum fault store_thumbnails_due(struct store *store, int ns, struct arena *arena,
                                         int64_t most_waiting, bool *is_due_r);
MUST_USE enum fault store_thumbnails_sweep(struct store *store, int ns, struct arena *arena,
                                           struct thumbnails_sweep *sweep_r);
/* `begins`: from now on it is the last one.  Later it is noted only if no other has become due meanwhile. */
MUST_USE enum fault store_thumbnails_swept(struct store *store, int ns, struct arena *arena,
                                           const struct thumbnails_sweep *sweep, bool begins);

#endif
