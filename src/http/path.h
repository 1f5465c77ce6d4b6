/* path: the URI of a request: the pieces of its path, and its query string. */
#ifndef STAMPD_HTTP_PATH_H
#define STAMPD_HTTP_PATH_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"

/* Splits the path of a raw request URI at its slashes and decodes the pieces ("%2F" stays inside its piece);
 * "/" has no pieces.  The URI is read up to its '?'.  FAULT_NPATH: not beginning with a slash, more than
 * `most` pieces, an empty piece, "." or ".." however written, a '#'.  FAULT_AARG: a wrong escape or a NUL.
 * FAULT_AUTF8. */
MUST_USE enum fault path_split(struct arena *arena, struct bytes request_uri, struct bytes *pieces_r,
                               size_t most, size_t *count_r);
/* The query string: what follows the path, between '?' and '#'. */
struct bytes path_query(struct bytes request_uri);
/* Joins pieces into a path, escaped for use in a header; the inverse of path_split. */
const char *path_join(struct arena *arena, const struct bytes *pieces, size_t count);

#endif
