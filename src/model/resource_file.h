/* resource_file: a file of a namespace, served to everybody at /{ns}/res/<path>: its path, its media type and
 * the documents of the namespace z that hold it.
 *
 * | document of z | items |
 * | --- | --- |
 * | Resources/<code> | `File`, key: the path: {"type","size","sha256","policy"}; one for each file of the
 * namespace | | Resource/<code>/<path> | singleton `Meta`: the same; raw `Part`, keys 0000, 0001…: pieces of
 * the bytes in base64url |
 *
 * The server and stampctl read, validate and write them here.  Pure. */
#ifndef STAMPD_MODEL_RESOURCE_FILE_H
#define STAMPD_MODEL_RESOURCE_FILE_H

#include "base/arena.h"
#include "base/bytes.h"

enum {
    RESOURCE_FILE_PATH_MOST = 200, /* bytes */
    RESOURCE_FILE_DEPTH_MOST = 16,
    RESOURCE_FILE_TYPE_MOST = 100,
    RESOURCE_FILE_POLICY_MOST = 1000,
    RESOURCE_FILE_PART_BYTES = 524288, /* of the file, 699,051 of base64 */
    RESOURCE_FILE_SHA256 = 64          /* hexadecimal digits */
};

/* What is expected of a path: up to 16 parts between slashes, none empty, "." or "..", UTF-8 without control
 * characters, backslash, %, ? and #; NULL: it is one. */
const char *resource_file_refuse_path(struct bytes path);
/* The path that the pieces of an address make; NO_BYTES: they make none. */
struct bytes resource_file_join(struct arena *arena, const struct bytes *pieces, size_t count);

/* The media type of a file that has none declared, by its extension; NULL: it must be declared.  Types that a
 * browser runs scripts of, as HTML and SVG, must always be. */
const char *resource_file_type(struct bytes path);
/* What is expected of a media type: `type/subtype` in lower case, with parameters or none; not multipart;
 * NULL: it is one. */
const char *resource_file_refuse_type(struct bytes type);
/* May a browser run scripts of such a file when it shows it as a page: HTML, SVG, any XML? */
bool resource_file_is_active(struct bytes type);
/* What is expected of a Content-Security-Policy; NULL: it is one.  An empty one: the header is not sent. */
const char *resource_file_refuse_policy(struct bytes policy);

/* What is known of a file. */
struct resource_file {
    struct bytes type;
    int64_t size;
    struct bytes sha256; /* hexadecimal */
    struct bytes policy; /* NO_BYTES: that of its type */
};

/* As the content of an item. */
struct bytes resource_file_write(struct arena *arena, const struct resource_file *file);
/* False: the content is not one. */
MUST_USE bool resource_file_read(struct arena *arena, struct bytes content, struct resource_file *file_r);

#define RESOURCE_FILE_CLASS "Resource"
#define RESOURCE_FILE_LIST  "Resources"
/* The id of the document of a file. */
struct bytes resource_file_id(struct arena *arena, struct bytes code, struct bytes path);
/* The key of a piece. */
struct bytes resource_file_part_key(struct arena *arena, size_t number);
/* The bytes of a piece of a file when an item may have so many. */
size_t resource_file_part_bytes(int64_t limit_content_bytes);
/* A piece as it is stored. */
struct bytes resource_file_encode(struct arena *arena, struct bytes piece);
/* The bytes of a stored piece, or of base64 that a client sends, with either alphabet; NO_BYTES: it is none.
 */
struct bytes resource_file_decode(struct arena *arena, struct bytes text);

#endif
