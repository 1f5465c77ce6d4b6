/* sealed_feed: the content of a file of an encrypted namespace whose bytes come in order from elsewhere, such
 * as an object store, in pieces of any size (sealed_file.h). */
#ifndef STAMPD_SEAL_SEALED_FEED_H
#define STAMPD_SEAL_SEALED_FEED_H

#include "seal/sealed_file.h"

struct sealed_feed;
/* `stored`: the size of the file there.  Borrows the keys.  `take` gets what has been checked, in pieces that
 * are valid during the call, and returns false to end early; NULL: it is checked only. */
struct sealed_feed *sealed_feed_create(const struct sealed_file_keys *keys,
                                       const unsigned char name[SEALED_FILE_NAME], int64_t stored,
                                       bool (*take)(void *context, struct bytes piece), void *context)
    __attribute__((returns_nonnull));
/* False: no more is wanted, or the file is not what was stored. */
MUST_USE bool sealed_feed_add(struct sealed_feed *feed, struct bytes piece);
/* FINE: all chunks were there and right, or `take` has ended it. */
MUST_USE enum sealed_file_state sealed_feed_end(const struct sealed_feed *feed);
/* The header of the file; zeros: it has not come. */
const unsigned char *sealed_feed_header(const struct sealed_feed *feed);
void sealed_feed_destroy(struct sealed_feed *feed);

#endif
