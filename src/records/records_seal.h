/* records_seal: records of encrypted namespaces on disk (doc/explanation/encryption.md).
 *
 * The records belong to the host, and so does the key under which they are encrypted: 256 random bits in the
 * file `key` of their folder, under the site key.  So they are loaded without a database.  From it and the
 * code of the namespace come two keys: one for texts, XAES-256-GCM with a random nonce, and one for keys of
 * records, of which the disk has an HMAC-SHA256.  A text is authenticated with the place where it stands. */
#ifndef STAMPD_RECORDS_RECORDS_SEAL_H
#define STAMPD_RECORDS_RECORDS_SEAL_H

#include "base/builder.h"
#include "edge/crypto.h"
#include "records/records.h"

/* The first byte of a place has this bit when what stands there is encrypted; codes are ASCII. */
enum { RECORDS_SEAL_MARK = 0x80 };
/* Of a key on disk: the namespace, and a digest, as LMDB has shorter keys than records. */
enum { RECORDS_PLACE_BYTES = RECORDS_CODE_MOST + CRYPTO_SHA256 };

struct records_seal;

/* Reads the key of the folder by the site key (site_key_load); without the file `key` there is none, which is
 * no error.  Returns NULL, or why not; the text is valid until the next call. */
MUST_USE const char *records_seal_read(struct records_seal **seal_r, const char *folder);
/* Makes the file if there is none, and a site key; writes it again if it is under the former site key.
 * Durable.  For the process that has the right to write to the folder. */
MUST_USE const char *records_seal_write(struct records_seal **seal, const char *folder);
/* Erases it; NULL is allowed. */
void records_seal_free(struct records_seal *seal);

/* Of an entry: does it stand where encrypted ones do? */
static inline bool records_seal_is_place(struct bytes place)
{
    return place.size == RECORDS_PLACE_BYTES && ((unsigned char)*place.data & RECORDS_SEAL_MARK);
}

/* `place_r`: with the code already. */
void records_seal_place(struct records_seal *seal, struct bytes key,
                        unsigned char place_r[RECORDS_PLACE_BYTES]);
/* Sets `sealed_r`. */
void records_seal_text(struct records_seal *seal, struct bytes place, struct bytes text,
                       struct builder *sealed_r);

enum records_seal_result {
    RECORDS_SEAL_OPENED,
    RECORDS_SEAL_FOREIGN /* of another key */,
    RECORDS_SEAL_DAMAGED
};
/* What stands at the place, decrypted where it is. */
enum records_seal_result records_seal_open(struct records_seal *seal, struct bytes place,
                                           struct builder *sealed, struct bytes *text_r);

#endif
