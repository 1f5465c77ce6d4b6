/* journal_keys: rights of the keys of stamp-journal: a file of keys, by their digests.
 *
 *   # namespace  right  SHA-256 of the key                                                    prefix of keys
 *   shop         write  5e884898da28047151d0e56f8dc6292773603d0d6aabbd62a11ef721d1542d8      presence.
 *
 * `read` or `write`, which includes read; without a prefix, all keys.  Several lines with one digest add up.
 * Behind them may stand the terms of what is written by a line: ttl_ms=, ttl_most_ms=, bytes=, records=, each
 * with a positive integer, and persist=1: what SET stores and ADD makes is kept on disk. */
#ifndef STAMPD_JOURNAL_JOURNAL_KEYS_H
#define STAMPD_JOURNAL_JOURNAL_KEYS_H

#include "base/bytes.h"
#include "edge/crypto/crypto.h"
#include "records/records.h"

enum {
    JOURNAL_KEYS_MOST = 256,
    JOURNAL_KEYS_FILE_MOST = 65536,
    JOURNAL_KEYS_PREFIX_MOST = 128,
    JOURNAL_KEYS_SENT_MOST = 256
};

struct journal_keys;

/* False: one line in `problem`. */
MUST_USE bool journal_keys_load(struct journal_keys **keys_r, const char *path, char *problem,
                                size_t problem_size);
void journal_keys_free(struct journal_keys *keys); /* NULL is allowed */

/* What a connection has shown: zeroed: nothing. */
struct journal_caller {
    const struct journal_keys *keys;
    struct bytes ns; /* of the keys */
    char digest[CRYPTO_SHA256_HEX + 1];
};
/* Is there a line with this namespace and key? */
MUST_USE bool journal_keys_enter(const struct journal_keys *keys, struct bytes ns, struct bytes key,
                                 struct journal_caller *caller_r);
/* The same key for another namespace. */
MUST_USE bool journal_keys_enter_other(struct journal_caller *caller, struct bytes ns);
/* The namespace of the first line with this key; NO_BYTES: none. */
struct bytes journal_keys_first(const struct journal_keys *keys, struct bytes key);
/* The number of the first line with the caller's namespace and key, below JOURNAL_KEYS_MOST. */
size_t journal_keys_number(const struct journal_caller *caller);
bool journal_keys_allow(const struct journal_caller *caller, struct bytes key, bool is_write);
/* Holds a change to the terms of the first line that allows to write its key, of RENAME the new one: its end,
 * and whose share it is.  False: it is to last longer than that allows. */
MUST_USE bool journal_keys_hold(const struct journal_caller *caller, struct records_command *command);
/* Can it be sent in a header: 1 to JOURNAL_KEYS_SENT_MOST visible ASCII characters? */
bool journal_keys_is_sendable(struct bytes key);

#endif
