/* archive_files: the files of attachments that an archive has, or that it expects in the namespace.
 *
 * A file is a member `files/<digest>`, each once, in the order of the digests; files that the archive leaves
 * out are lines of members `left-out/000001.txt`….  A set of them needs 32 bytes a file. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_FILES_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_FILES_H

#include "base/builder.h"
#include "blob/blob_store.h"
#include "edge/json/json.h"

struct archive_files {
    struct blob_digest *digests; /* ascending */
    size_t count, room;
    int64_t bytes; /* of the files; counted by the caller */
};

enum { ARCHIVE_FILES_NAME = BLOB_HEX + 8 };
/* The name of the member with this file, and back; false: it is another member. */
void archive_files_write_name(const struct blob_digest *digest, char name_r[ARCHIVE_FILES_NAME]);
MUST_USE bool archive_files_read_name(struct bytes name, struct blob_digest *digest_r);

/* False: it does not follow the last one. */
MUST_USE bool archive_files_add(struct arena *arena, struct archive_files *files,
                                const struct blob_digest *digest);
bool archive_files_has(const struct archive_files *files, const struct blob_digest *digest);

/* Is it a member with files that were left out? */
bool archive_files_is_left_out(struct bytes name);
/* Adds the digests of its lines; false: they are not such lines, or not in order. */
MUST_USE bool archive_files_add_lines(struct arena *arena, struct archive_files *files, struct bytes lines);

/* Appends the member "files" of an object: count, bytes, and the SHA-256 of all digests.  And does the object
 * have exactly these files? */
void archive_files_write(const struct archive_files *files, struct builder *json);
bool archive_files_are_in(const struct archive_files *files, const struct json *object);

#endif
