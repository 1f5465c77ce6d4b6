/* sealed_file: a file of an encrypted namespace, encrypted in chunks, so that each can be read alone
 * (doc/explanation/encryption.md).
 *
 * The header has the id of a data key, a random salt, and a check.  Each file has a key of its own, derived
 * from the data key and the salt, and each of its chunks is encrypted once by AES-256-GCM under it: the nonce
 * is the number of the chunk and whether it is the last one, and what precedes the check in the header is
 * authenticated with it.  The check authenticates the header with the name and the size of the file.  So no
 * nonce repeats, and a file that was altered, cut off, put together of others, or that stands under the name
 * of another one is never returned.
 *
 * The header is written last: an unfinished file has none. */
#ifndef STAMPD_SEAL_SEALED_FILE_H
#define STAMPD_SEAL_SEALED_FILE_H

#include "base/base.h"
#include "base/bytes.h"
#include "seal/sealing.h"

enum {
    SEALED_FILE_CHUNK = 1 << 16,
    SEALED_FILE_SALT = 32,
    SEALED_FILE_NAME = 32,
    SEALED_FILE_BOUND = 16 + SEALED_FILE_SALT, /* of the header: mark, id of the key, salt */
    SEALED_FILE_HEADER = SEALED_FILE_BOUND + 32,
};

/* Keys of a namespace: the first makes names, the last encrypts what is written. */
struct sealed_file_keys {
    const struct sealing_keys *keys;
    size_t count;
};

/* The name of the file with this SHA-256, which does not disclose it: an HMAC. */
void sealed_file_name(const struct sealed_file_keys *keys, const unsigned char digest[SEALED_FILE_NAME],
                      unsigned char name_r[SEALED_FILE_NAME]);
/* Bytes of the file on the disk, and of its content; -1: no file has so many. */
int64_t sealed_file_size(int64_t clear);
int64_t sealed_file_clear_size(int64_t size);

/* --- writing; false: errno has the cause --- */
struct sealed_file_writer;
/* Writes at the position of the descriptor, which is the beginning of an empty file. */
struct sealed_file_writer *sealed_file_create(int fd, const struct sealed_file_keys *keys)
    __attribute__((returns_nonnull));
MUST_USE bool sealed_file_write(struct sealed_file_writer *writer, struct bytes piece);
/* The last chunk, and the header for this name. */
MUST_USE bool sealed_file_finish(struct sealed_file_writer *writer,
                                 const unsigned char name[SEALED_FILE_NAME]);
void sealed_file_destroy(struct sealed_file_writer *writer); /* NULL is allowed */

/* --- reading --- */
/* All that opens the chunks of one file, and nothing else. */
struct sealed_file_head {
    unsigned char bound[SEALED_FILE_BOUND];
    unsigned char key[SEALING_KEY];
    int64_t size; /* of the content */
};
enum sealed_file_state {
    SEALED_FILE_FINE,
    SEALED_FILE_FAILED,  /* it cannot be read: errno has the cause */
    SEALED_FILE_UNKNOWN, /* it is under a data key that is not there */
    SEALED_FILE_ALTERED, /* cut off, or not what was written under this name */
};
/* Checks the header and the size of an open file.  Every chunk is checked when it is read. */
MUST_USE enum sealed_file_state sealed_file_begin(int fd, const struct sealed_file_keys *keys,
                                                  const unsigned char name[SEALED_FILE_NAME],
                                                  struct sealed_file_head *head_r);
/* The same of the header and the size of a file that lies elsewhere. */
MUST_USE enum sealed_file_state sealed_file_check(const unsigned char header[SEALED_FILE_HEADER],
                                                  int64_t stored, const struct sealed_file_keys *keys,
                                                  const unsigned char name[SEALED_FILE_NAME],
                                                  struct sealed_file_head *head_r);
/* The id of the data key of the file. */
int64_t sealed_file_key_id(const struct sealed_file_head *head);

struct sealed_file_reader;
/* Borrows the descriptor. */
struct sealed_file_reader *sealed_file_open(int fd, const struct sealed_file_head *head)
    __attribute__((returns_nonnull));
/* What the content has from this place on, at most up to the end of a chunk, valid until the next call; none
 * at the end. */
MUST_USE enum sealed_file_state sealed_file_read(struct sealed_file_reader *reader, int64_t at,
                                                 struct bytes *piece_r);
/* Of a file that lies elsewhere: where the chunk is that has this place of the content, and its bytes there;
 * and what the content has from this place on, as sealed_file_read. */
void sealed_file_find_chunk(const struct sealed_file_head *head, int64_t at, int64_t *from_r, size_t *size_r);
MUST_USE enum sealed_file_state sealed_file_open_chunk(struct sealed_file_reader *reader, int64_t at,
                                                       struct bytes sealed, struct bytes *piece_r);
/* Reads another file from now on, without new memory. */
void sealed_file_turn(struct sealed_file_reader *reader, int fd, const struct sealed_file_head *head);
void sealed_file_close(struct sealed_file_reader *reader); /* NULL is allowed */

#endif
