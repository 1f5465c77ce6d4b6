/* records_use: what each namespace has of the memory, also for a process that only reads the file.  Declared
 * in records.h, but for what is here: which locks are of the file, for its test. */
#ifndef STAMPD_RECORDS_RECORDS_USE_H
#define STAMPD_RECORDS_RECORDS_USE_H

#include "base/base.h"

struct records_use_file {
    uint64_t inode;
    unsigned major, minor; /* of its device */
    bool has_device;       /* false: they are not known, and the inode decides */
};

/* Is it a lock of the file: "1: FLOCK ADVISORY READ 4711 fe:01:123456 0 EOF", device in hexadecimal? */
bool records_use_is_lock(const char *line, const struct records_use_file *file);

struct records_head;
/* Copies the head of the file; `is_ready` of it is 0 when nobody uses the records.  False: it cannot be read.
 */
MUST_USE bool records_use_peek(const char *path, struct records_head *head_r);

#endif
