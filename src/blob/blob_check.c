/* blob_check: a digest, or a feed that opens the chunks and drops their content. */
#include "blob/blob_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "edge/crypto/digest.h"
#include "seal/sealed_feed.h"

struct blob_check {
    struct blob_digest name;
    struct digest *digest;    /* NULL: it is encrypted */
    struct sealed_feed *feed; /* NULL: it is in clear */
};

struct blob_check *blob_check_begin(const struct sealed_file_keys *keys, const struct blob_digest *name,
                                    int64_t stored)
{
    struct blob_check *check = memory_zeroed(1, sizeof *check, "blob check");
    check->name = *name;
    if (keys->count)
        check->feed = sealed_feed_create(keys, check->name.bytes, stored, NULL, NULL);
    else
        check->digest = digest_create();
    return check;
}

/* An encrypted file that is wrong is noticed at the end, too. */
void blob_check_add(struct blob_check *check, struct bytes piece)
{
    if (!check->feed)
        digest_add(check->digest, piece);
    else if (!sealed_feed_add(check->feed, piece))
        return;
}

enum sealed_file_state blob_check_end(struct blob_check *check, unsigned char header_r[SEALED_FILE_HEADER])
{
    unsigned char present[CRYPTO_SHA256], none[SEALED_FILE_HEADER] = {0};
    enum sealed_file_state state;
    if (check->feed) {
        state = sealed_feed_end(check->feed);
    } else {
        digest_end(check->digest, present);
        state = memcmp(present, check->name.bytes, BLOB_DIGEST) == 0 ? SEALED_FILE_FINE : SEALED_FILE_ALTERED;
    }
    if (header_r)
        memcpy(header_r, check->feed ? sealed_feed_header(check->feed) : none, SEALED_FILE_HEADER);
    if (check->feed)
        sealed_feed_destroy(check->feed);
    else
        digest_destroy(check->digest);
    free(check);
    return state;
}
