/* archive_sum: what a set of documents amounts to: counts, and a digest that does not depend on their order.
 *
 * The digest is the sum of the SHA-256 of all lines (archive_line.h), modulo 2^256.  Two sets with the same
 * sum are the same, unless somebody has computed them to collide: it detects what was lost, added or altered
 * by accident, and is no signature. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_SUM_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_SUM_H

#include "base/builder.h"
#include "edge/crypto/digest.h"
#include "edge/json/json.h"

enum { ARCHIVE_SUM_LIMBS = CRYPTO_SHA256 / 8, ARCHIVE_SUM_HEX = CRYPTO_SHA256_HEX };

struct archive_sum {
    int64_t documents, deleted;        /* live ones, and zombies */
    int64_t items;                     /* tombstones included */
    int64_t highest;                   /* version */
    uint64_t limbs[ARCHIVE_SUM_LIMBS]; /* the lowest first */
};

/* Counts a line, with its newline. */
void archive_sum_add(struct archive_sum *sum, struct digest *digest, struct bytes line);
bool archive_sum_equals(const struct archive_sum *sum, const struct archive_sum *other);

/* As members of a JSON object, without its braces. */
void archive_sum_write(const struct archive_sum *sum, struct builder *json);
/* Reads the members of an object; false: one is absent or malformed. */
MUST_USE bool archive_sum_read(const struct json *object, struct archive_sum *sum_r);

#endif
