/* records_seal: records of encrypted namespaces on disk (doc/explanation/encryption.md).
 *
 * The records belong to the host, and so does the key under which they are encrypted: 256 random bits in the
 * file `key` of their folder, under the site key.  So they are loaded without a database.  From it and the
 * code of the namespace come two keys: one for texts, XAES-256-GCM with a random nonce, and one for keys of
 * records, of which the disk has an HMAC-SHA256.  A text is authenticated with the place where it stands. */
#ifndef STAMPD_RECORDS_RECORDS_SEAL_H
#define STAMPD_RECORDS_RECORDS_SEAL_H

#include "base/builder.h"
#include "edge/crypto/crypto.h"
#include "records/records.h"

/* The first byte of a place has this bit when what stands there is encrypted; codes are ASCII. */
enum { RECORDS_SEAL_MARK = 0x80 };
/* Of a key on disk: the namespace, and a digest, as LMDB has shorter keys than records. */
enum { RECORDS_PLACE_BYTES = RECORDS_CODE_MOST + CRYPTO_SHA256 };

struct records_seal;

/* The file `key`, and `key.next`, which has the key that the folder is to get (records_rekey.h). */
enum records_seal_file { RECORDS_SEAL_PRESENT, RECORDS_SEAL_NEXT };

/* Of these, NULL is returned, or why not; the text is valid until the next call.  They are durable. */

/* Reads a key of the folder by the site key (site_key_load); without the file there is none, which is no
 * error. */
MUST_USE const char *records_seal_read(struct records_seal **seal_r, const char *folder,
                                       enum records_seal_file file);
/* Makes the file `key` if there is none, and a site key; writes it again if it is under the former site key,
 * and `key.next` too.  For the process that has the right to write to the folder. */
MUST_USE const char *records_seal_write(struct records_seal **seal, const char *folder);
/* Makes the file `key.next`, with a new key.  There must be a site key, and `key`; `is_there_r`: the file
 * existed, and stays.  Needs no right to write to the folder. */
MUST_USE const char *records_seal_make_next(const char *folder, bool *is_there_r);
/* Writes both files again, as far as they are under the former site key; what is there is durable then. Needs
 * no such right either. */
MUST_USE const char *records_seal_wrap(const char *folder);
/* The next key takes the place of the present one.  For the process that has the right to write. */
MUST_USE const char *records_seal_replace(const char *folder);
/* Erases it; NULL is allowed. */
void records_seal_free(struct records_seal *seal);
/* Of the site key under which the file is (site_key_mark). */
const char *records_seal_site(const struct records_seal *seal);

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

/* Is a sealed text under this key, as far as it says? */
bool records_seal_has(const struct records_seal *seal, struct bytes sealed);

enum records_seal_result {
    RECORDS_SEAL_OPENED,
    RECORDS_SEAL_FOREIGN /* of another key */,
    RECORDS_SEAL_DAMAGED
};
/* NULL: it was opened; else why not. */
const char *records_seal_explain(enum records_seal_result result);
/* What stands at the place, decrypted where it is. */
enum records_seal_result records_seal_open(struct records_seal *seal, struct bytes place,
                                           struct builder *sealed, struct bytes *text_r);

#endif
