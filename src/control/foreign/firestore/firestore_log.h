/* firestore_log: the records of one file of an export, in the format of the log of LevelDB.
 *
 * A file is blocks of 32 KiB.  A fragment has its checksum (CRC-32C, masked, 4 bytes), its size (2 bytes) and
 * its type (1 byte), little endian, and lies in one block; a record is one fragment or several.  What is left
 * of a block is zeros.  Anything else is refused, since what follows cannot be trusted. */
#ifndef STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_LOG_H
#define STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_LOG_H

#include "base/builder.h"
#include "edge/crypto/digest.h"

enum { FIRESTORE_BLOCK = 32768, FIRESTORE_HEAD = 7 };

enum firestore_type { FIRESTORE_PADDING, FIRESTORE_FULL, FIRESTORE_FIRST, FIRESTORE_MIDDLE, FIRESTORE_LAST };
struct firestore_fragment {
    enum firestore_type type; /* FIRESTORE_PADDING: nothing else is in this block */
    struct bytes text;
};
/* Reads the fragment at a place in a block, the last one of a file may be shorter than others.  False:
 * `problem_r`, static, says why not. */
MUST_USE bool firestore_log_fragment(struct bytes block, size_t at, struct firestore_fragment *fragment_r,
                                     const char **problem_r);

struct firestore_log {
    int fd;
    struct digest *digest; /* of the caller: gets what is read */
    char *block;           /* of the caller: FIRESTORE_BLOCK bytes */
    size_t size, at;       /* of the block; where the next fragment begins */
    int64_t start;         /* of the block, in the file */
    int64_t record;        /* where the last record begins, or the fragment that is wrong */
    struct builder text;   /* of a record of several fragments */
};
enum firestore_log_event { FIRESTORE_LOG_RECORD, FIRESTORE_LOG_END, FIRESTORE_LOG_FAILED };

/* False: errno says why. */
MUST_USE bool firestore_log_open(struct firestore_log *log, const char *path, char *block,
                                 struct digest *digest);
void firestore_log_close(struct firestore_log *log);
/* The record is valid until the next call.  FIRESTORE_LOG_FAILED: `problem_r`, static, says why. */
enum firestore_log_event firestore_log_next(struct firestore_log *log, struct bytes *record_r,
                                            const char **problem_r);

#endif
