/* foreign_ids: digests, sorted once. */
#include "control/foreign/foreign_ids.h"

#include <stdlib.h>
#include <string.h>

#include "edge/crypto/crypto.h"

enum { DIGEST_SIZE = 16 }; /* two ids with one digest would lose a document: 8 bytes were too few */

struct repeated_id {
    unsigned char digest[DIGEST_SIZE];
    int64_t left; /* times that it comes again */
};

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, DIGEST_SIZE);
}

void foreign_ids_add(struct foreign_ids *ids, struct bytes id)
{
    unsigned char digest[CRYPTO_SHA256];
    crypto_sha256(id, digest);
    builder_add(&ids->digests, digest, DIGEST_SIZE);
}

int64_t foreign_ids_settle(struct foreign_ids *ids)
{
    const size_t count = ids->digests.size / DIGEST_SIZE;
    const char *digests = ids->digests.data;
    int64_t again = 0;
    if (count)
        qsort(ids->digests.data, count, DIGEST_SIZE, compare_digests);
    for (size_t i = 0, next; i < count; i = next) {
        struct repeated_id one = {.left = 0};
        memcpy(one.digest, digests + i * DIGEST_SIZE, DIGEST_SIZE);
        for (next = i + 1; next < count && memcmp(one.digest, digests + next * DIGEST_SIZE, DIGEST_SIZE) == 0;
             next++)
            one.left++;
        again += one.left;
        if (one.left)
            builder_add(&ids->repeated, &one, sizeof one);
    }
    builder_free(&ids->digests);
    ids->digests = (struct builder){0};
    return again;
}

bool foreign_ids_is_last(struct foreign_ids *ids, struct bytes id)
{
    unsigned char digest[CRYPTO_SHA256];
    const size_t count = ids->repeated.size / sizeof(struct repeated_id);
    if (!count)
        return true;
    crypto_sha256(id, digest);
    struct repeated_id *one =
        bsearch(digest, ids->repeated.data, count, sizeof(struct repeated_id), compare_digests);
    if (!one || !one->left)
        return true;
    one->left--;
    return false;
}

void foreign_ids_free(struct foreign_ids *ids)
{
    builder_free(&ids->digests);
    builder_free(&ids->repeated);
}
