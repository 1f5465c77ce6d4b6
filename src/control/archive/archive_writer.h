/* archive_writer: an archive on its way into a file or a pipe: members, and at the end their digests.
 *
 * doc/reference/archives.md describes the format.  A file appears under its name when it is complete and
 * durable; until then it is FILE.part. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_WRITER_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_WRITER_H

#include "base/arena.h"
#include "base/bytes.h"

struct archive_writer;
struct archive_writer_options {
    const char *path; /* "-": standard output */
    int level;        /* of the compression */
    struct bytes key; /* to encrypt with; NO_BYTES: not encrypted */
};

#define ARCHIVE_MANIFEST "manifest.json" /* the first member */
#define ARCHIVE_DIGESTS  "digests.json"  /* the last */

/* Functions that return false have reported why. */
MUST_USE bool archive_writer_open(struct arena *arena, const struct archive_writer_options *options,
                                  struct archive_writer **writer_r);
MUST_USE bool archive_writer_add(struct archive_writer *writer, const char *name, struct bytes bytes);
/* A member in pieces, of `size` bytes together: the file of an attachment, which is not among the members
 * that the digests list. */
MUST_USE bool archive_writer_begin(struct archive_writer *writer, const char *name, int64_t size);
MUST_USE bool archive_writer_add_piece(struct archive_writer *writer, struct bytes piece);
/* Bytes written to the file so far. */
int64_t archive_writer_size(const struct archive_writer *writer);
/* Adds the digests, with `members` (of a JSON object, without braces; may be empty) beside them; makes the
 * file durable and gives it its name. */
MUST_USE bool archive_writer_finish(struct archive_writer *writer, struct bytes members);
void archive_writer_close(struct archive_writer *writer); /* NULL is allowed; an unfinished file is removed */

#endif
