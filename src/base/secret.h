/* secret: a key or password in a file of its own. */
#ifndef STAMPD_BASE_SECRET_H
#define STAMPD_BASE_SECRET_H

#include "base/base.h"
#include "base/bytes.h"

struct secret {
    char *text; /* NULL: none */
};

/* Reads the first line; a file that others may read is refused.  On failure returns false with one line in
 * `problem`, which names the setting. */
MUST_USE bool secret_read(struct secret *secret, const char *setting, const char *path, char *problem,
                          size_t problem_size);
/* Is it a file that other users may neither read nor write?  Else false with one line in `problem`. */
MUST_USE bool secret_is_closed(const char *setting, const char *path, char *problem, size_t problem_size);
void secret_erase(struct secret *secret);

/* The key of a header `Authorization: Bearer KEY` (RFC 6750), a slice of the header, empty when no key
 * follows the word; NO_BYTES: another scheme, or no header. */
struct bytes secret_bearer(struct bytes header);

#endif
