/* sealed_stream: a stream of bytes encrypted by AES-256-GCM in chunks, so that it needs little memory and no
 * altered byte is ever returned.
 *
 * The header is a mark with the version of the format, a random salt, and a check of the key.  Each stream
 * has a key of its own, derived from the secret and the salt, so the nonce of a chunk is its number and
 * whether it is the last one: chunks that are altered, removed, repeated or reordered are noticed, and so is
 * a stream that was cut off, at the end of a chunk too (the STREAM construction of Hoang, Reyhanitabar,
 * Rogaway and Vizár). */
#ifndef STAMPD_SEAL_SEALED_STREAM_H
#define STAMPD_SEAL_SEALED_STREAM_H

#include "base/base.h"
#include "base/bytes.h"

enum {
    SEALED_STREAM_CHUNK = 1 << 16,
    SEALED_STREAM_MARK = 16,
    SEALED_STREAM_HEADER = SEALED_STREAM_MARK + 64
};

/* Is this the beginning of such a stream, of any version?  Needs SEALED_STREAM_MARK bytes. */
bool sealed_stream_is(struct bytes beginning);

/* --- writing --- */

struct sealed_stream_writer;
struct sealed_stream_writer *sealed_stream_create(struct bytes secret,
                                                  bool (*write)(void *context, struct bytes bytes),
                                                  void *context) __attribute__((returns_nonnull));
/* False: `write` has returned false. */
MUST_USE bool sealed_stream_write(struct sealed_stream_writer *writer, struct bytes bytes);
/* Writes the last chunk; without it the stream is cut off. */
MUST_USE bool sealed_stream_finish(struct sealed_stream_writer *writer);
void sealed_stream_destroy(struct sealed_stream_writer *writer); /* NULL is allowed */

/* --- reading --- */

struct sealed_stream_reader;
/* `read` returns the next bytes, none at the end; false: failed. */
struct sealed_stream_reader *sealed_stream_open(struct bytes secret,
                                                bool (*read)(void *context, struct bytes *bytes_r),
                                                void *context) __attribute__((returns_nonnull));
/* The next bytes, valid until the next call, none at the end.  False: `read` has failed (problem NULL), or
 * the stream is not what was written. */
MUST_USE bool sealed_stream_read(struct sealed_stream_reader *reader, struct bytes *bytes_r);
/* Why the stream is refused, static; NULL: it is not. */
const char *sealed_stream_problem(const struct sealed_stream_reader *reader);
void sealed_stream_close(struct sealed_stream_reader *reader); /* NULL is allowed */

#endif
