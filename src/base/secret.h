/* secret: a key or password in a file of its own. */
#ifndef STAMPD_BASE_SECRET_H
#define STAMPD_BASE_SECRET_H

#include "base/base.h"

struct secret {
    char *text; /* NULL: none */
};

/* Reads the first line; a file that others may read is refused.  On failure one line in
 * `problem`, which names the setting. */
MUST_USE bool secret_read(struct secret *secret, const char *setting, const char *path, char *problem,
                          size_t problem_size);
void secret_erase(struct secret *secret);

#endif
