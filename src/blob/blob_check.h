/* blob_check: whether bytes that come from elsewhere, such as an object store, are those of a file.
 *
 * Of a file in clear its digest decides; of an encrypted one each chunk, its name and its size are
 * authenticated (sealed_file.h). */
#ifndef STAMPD_BLOB_BLOB_CHECK_H
#define STAMPD_BLOB_BLOB_CHECK_H

#include "blob/blob_store.h"
#include "seal/sealed_file.h"

struct blob_check;
/* Keys none: the file is in clear.  `stored`: its size there.  Borrows the keys. */
struct blob_check *blob_check_begin(const struct sealed_file_keys *keys, const struct blob_digest *name,
                                    int64_t stored) __attribute__((returns_nonnull));
/* The bytes in order, in pieces of any size, as they are stored. */
void blob_check_add(struct blob_check *check, struct bytes piece);
/* FINE: all bytes were there and right.  UNKNOWN: it is under a data key that is not there.  Frees the check.
 * `header_r`, unless NULL: the header of an encrypted file; zeros: it is in clear. */
MUST_USE enum sealed_file_state blob_check_end(struct blob_check *check,
                                               unsigned char header_r[SEALED_FILE_HEADER]);

#endif
