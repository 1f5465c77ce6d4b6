/* archive_line: a document as one line of an archive, exactly as its rows are, and back.
 *
 * {"c":class,"id":id,"v":version,"ct":ctime,"dt":dtime,"items":[item…]}, of a deleted document
 * {"c","id","v","del":true}.  An item is {"c":class,"k":key,"v":version,"op":vop} and its content: "j", JSON
 * byte for byte as it is stored; "t", the same as a string, when it has line breaks; "s", raw text; or
 * "del":true for a tombstone.  No "k": a singleton.  No "op": it is the version.  Line and items end without
 * blanks; items are ordered by class and key. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_LINE_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_LINE_H

#include "base/arena.h"
#include "base/builder.h"
#include "edge/crypto/digest.h"
#include "edge/json/json.h"

struct archive_header {
    struct bytes class, id;
    int64_t version, ctime, dtime; /* ctime 0: deleted */
};
struct archive_item {
    struct bytes class, key;
    int64_t version, vop;
    struct bytes content; /* NO_BYTES: a tombstone */
    bool is_raw;
};

/* A line is its beginning, its items, its end. */
void archive_line_begin(struct builder *line, const struct archive_header *header);
void archive_line_add_item(struct builder *line, const struct archive_item *item, bool is_first);
void archive_line_end(struct builder *line, const struct archive_header *header); /* with the newline */

struct archive_document {
    struct archive_header header;
    struct archive_item *items;
    size_t count;
    int64_t bytes;   /* of keys and contents: v1 */
    bool is_deleted; /* the line has "del" */
};
/* Bytes of its attachments: v2. */
int64_t archive_line_attached(const struct archive_document *document);
/* Reads a line, without its newline, whose JSON is not checked inside contents.  Texts are slices of the line
 * or in the arena.  Members may stand in any order; a member that is not known is refused.  False:
 * `problem_r`, static, is what was expected. */
MUST_USE bool archive_line_read(struct arena *arena, struct bytes line, struct archive_document *document_r,
                                const char **problem_r);

/* What a set of documents amounts to: counts, and a digest that does not depend on their order.
 *
 * The digest is the sum of the SHA-256 of all lines (archive_line.h), modulo 2^256.  Two sets with the same
 * sum are the same, unless somebody has computed them to collide: it detects what was lost, added or altered
 * by accident, and is no signature. */

enum { ARCHIVE_SUM_LIMBS = CRYPTO_SHA256 / 8, ARCHIVE_SUM_HEX = CRYPTO_SHA256_HEX };

struct archive_sum {
    int64_t documents, deleted;        /* live ones, and zombies */
    int64_t items;                     /* tombstones included */
    int64_t highest;                   /* version */
    uint64_t limbs[ARCHIVE_SUM_LIMBS]; /* the lowest first */
};

/* Counts a line, with its newline. */
void archive_sum_add(struct archive_sum *sum, struct digest *digest, struct bytes line);
bool archive_sum_equals(const struct archive_sum *sum, const struct archive_sum *other);

/* As members of a JSON object, without its braces. */
void archive_sum_write(const struct archive_sum *sum, struct builder *json);
/* Reads the members of an object; false: one is absent or malformed. */
MUST_USE bool archive_sum_read(const struct json *object, struct archive_sum *sum_r);

#endif
