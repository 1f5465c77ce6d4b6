/* tarball: files in a tar stream (POSIX pax) compressed with Zstandard, behind libarchive.
 *
 * Bytes go to a function of the caller and come from one, so that they can be encrypted or counted on their
 * way.  Memory does not grow with the stream. */
#ifndef STAMPD_EDGE_TARBALL_H
#define STAMPD_EDGE_TARBALL_H

#include "base/bytes.h"

/* --- writing --- */

struct tarball_writer;
struct tarball_sink {
    bool (*write)(void *context, struct bytes bytes); /* false: failed, errno has the reason */
    void *context;
};

/* `level`: of the compression, 1 to 19.  NULL: failed; `problem_r` has the reason, static. */
struct tarball_writer *tarball_create(const struct tarball_sink *sink, int level, const char **problem_r);
/* Adds a file, or begins one of `size` bytes that follow by tarball_add_piece. */
MUST_USE bool tarball_add(struct tarball_writer *writer, const char *name, struct bytes bytes);
MUST_USE bool tarball_begin(struct tarball_writer *writer, const char *name, int64_t size);
MUST_USE bool tarball_add_piece(struct tarball_writer *writer, struct bytes bytes);
/* Ends the stream; frees nothing. */
MUST_USE bool tarball_finish(struct tarball_writer *writer);
/* Why the last function failed; valid until the writer is destroyed. */
const char *tarball_problem(const struct tarball_writer *writer);
void tarball_destroy(struct tarball_writer *writer); /* NULL is allowed; what was not finished is cut off */

/* --- reading --- */

struct tarball_reader;
struct tarball_source {
    /* Returns the next bytes, which are valid until the next call; an empty text: the end.  False: failed;
     * the reader then reports a damaged stream. */
    bool (*read)(void *context, struct bytes *bytes_r);
    void *context;
};
enum tarball_event { TARBALL_FILE, TARBALL_END, TARBALL_BROKEN };

/* NULL: out of memory. */
struct tarball_reader *tarball_open(const struct tarball_source *source);
/* The next file; `name_r` is valid until the next call.  Anything but a plain file is TARBALL_BROKEN. */
MUST_USE enum tarball_event tarball_next(struct tarball_reader *reader, const char **name_r, int64_t *size_r);
/* Reads up to `size` bytes of the file; 0: its end, -1: the stream is damaged. */
MUST_USE int64_t tarball_read(struct tarball_reader *reader, void *buffer, size_t size);
/* Why the stream is damaged. */
const char *tarball_damage(const struct tarball_reader *reader);
void tarball_close(struct tarball_reader *reader); /* NULL is allowed */

#endif
