/* archive_key: the secret that an archive is encrypted with, in a file of its own (`stampctl key new
 * --archive`). */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_KEY_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_KEY_H

#include "control/control.h"

#define ARCHIVE_KEY_LINE(path)                                                                               \
    {                                                                                                        \
        .name = "key-file", .argument = "FILE", .help = "The archive is encrypted with the key in FILE.",    \
        .text = (path)                                                                                       \
    }

/* `path` NULL: no key, NO_BYTES.  A file that any user may read, or a key of less than 32 characters, is
 * refused.  On failure reports why. */
MUST_USE bool archive_key_read(struct control *control, const char *path, struct bytes *key_r);

#endif
