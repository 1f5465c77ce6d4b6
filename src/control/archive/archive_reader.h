/* archive_reader: the members of an archive, one after the other, each checked against its digest once the
 * digests are known.
 *
 * Whoever uses an archive verifies it first, as a whole: archive_verify reads it to the end.  A second pass
 * (archive_reader_open with the contents of the first) checks each member again before it is returned, so a
 * file that is changed between the passes is detected too. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_READER_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_READER_H

#include "control/archive/archive_files.h"
#include "control/archive/archive_line.h"
#include "control/control.h"

enum { ARCHIVE_VERSION = 1 };

struct archive_member {
    struct bytes name;
    int64_t size;
    struct bytes sha256; /* hexadecimal */
};

/* What an archive is, by its first and its last member. */
struct archive_contents {
    struct bytes key; /* it is encrypted with; NO_BYTES: it is not */
    const struct json *manifest;
    int64_t at, floor;      /* of its snapshot; stamps */
    struct bytes ns, state; /* code and state of the namespace */
    struct bytes snapshot, database;
    bool is_partial;                      /* only some classes or ids */
    bool is_increment;                    /* only what has changed since another snapshot */
    struct archive_sum sum;               /* of its documents */
    struct archive_files files, left_out; /* of attachments */
    struct archive_member *members;
    size_t count;                          /* files, and the last one, of digests, are not among them */
    unsigned char identity[CRYPTO_SHA256]; /* digest of the last member */
    int64_t file_bytes, document_bytes;    /* of the file; of its documents, not compressed */
};

/* Reads the whole archive and checks it: every member against its digest, every document, their order, their
 * sum.  One that is encrypted needs its key, and with a key no other one is read.  With `shows_progress`, on
 * standard error.  On failure reports why. */
MUST_USE bool archive_verify(struct arena *arena, const char *path, struct bytes key, bool shows_progress,
                             struct archive_contents *contents_r);

struct archive_reader;
/* For the second pass.  On failure reports why. */
MUST_USE bool archive_reader_open(const char *path, const struct archive_contents *contents,
                                  struct archive_reader **reader_r);
/* Reads the next member whole into `bytes_r`, which is emptied first; `name_r` NULL: there are no more.  Of a
 * file nothing is read: archive_reader_take does, or the next call, which checks it.  On failure reports why.
 */
MUST_USE bool archive_reader_next(struct archive_reader *reader, struct bytes *name_r,
                                  struct builder *bytes_r);
/* Passes the bytes of the file that archive_reader_next has returned, in pieces; `take` returns false when it
 * has failed and reported why.  True: they are those of its digest. */
MUST_USE bool archive_reader_take(struct archive_reader *reader,
                                  bool (*take)(void *context, struct bytes piece), void *context);
int64_t archive_reader_file_size(const struct archive_reader *reader); /* of that file; 0: it is none */
void archive_reader_close(struct archive_reader *reader);              /* NULL is allowed */

/* A second pass over all members: `take` returns false when it has failed and reported why.  On failure
 * reports why. */
typedef bool archive_reader_taker(void *context, struct archive_reader *reader, struct bytes name,
                                  struct bytes bytes);
MUST_USE bool archive_reader_each(const char *path, const struct archive_contents *contents,
                                  archive_reader_taker *take, void *context);

/* The identity of the archive in hexadecimal. */
const char *archive_identity(struct arena *arena, const struct archive_contents *contents);

/* Is it a member with documents? */
bool archive_reader_has_documents(struct bytes name);

/* The secret that an archive is encrypted with, in a file of its own (`stampctl key new
 * --archive`). */

#define ARCHIVE_KEY_LINE(path)                                                                               \
    {                                                                                                        \
        .name = "key-file", .argument = "FILE", .help = "The archive is encrypted with the key in FILE.",    \
        .text = (path)                                                                                       \
    }

/* `path` NULL: no key, NO_BYTES.  A file that any user may read, or a key of less than 32 characters, is
 * refused.  On failure reports why. */
MUST_USE bool archive_key_read(struct control *control, const char *path, struct bytes *key_r);

#endif
