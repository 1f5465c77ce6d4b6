/* disk_table: texts by key in a folder, shared by processes: a table of LMDB, and before it a log.
 *
 * A change is appended to the log (disk_log.h), with one sync; when the log is full, it is emptied into the
 * table.  One process writes at a time; the others wait in disk_table_begin.  A writer that dies has changed
 * nothing unless it had committed; what is committed is on disk, also when the host fails.  A handle belongs
 * to the process that opened it: a child opens its own. */
#ifndef STAMPD_LOG_DISK_TABLE_H
#define STAMPD_LOG_DISK_TABLE_H

#include "base/builder.h"

enum { DISK_TABLE_KEY_MOST = 511 };

struct disk_table;

/* Creates what is missing of the folder but its parent.  `bytes`: the most that the table may have; the log
 * has a sixteenth of it beside, and 16 MiB at most.  NULL: one line in `problem`. */
struct disk_table *disk_table_open(const char *folder, size_t bytes, char *problem, size_t problem_size);
void disk_table_close(struct disk_table *disk); /* NULL is allowed */
/* False: this process is a child of the one that opened it, and must leave it alone. */
bool disk_table_is_own(const struct disk_table *disk);

/* Is it for want of room that a change has failed, of which a smaller one may succeed? */
bool disk_table_is_full(const char *error);

/* A change, whole or not at all.  Each returns NULL, or why it failed; then only disk_table_abandon follows
 * (not after disk_table_begin and disk_table_commit). */
MUST_USE const char *disk_table_begin(struct disk_table *disk);
/* Under the key, of 2 to DISK_TABLE_KEY_MOST bytes; NO_BYTES: nothing is to be there. */
MUST_USE const char *disk_table_put(struct disk_table *disk, struct bytes key, struct bytes text);
/* Durable. */
MUST_USE const char *disk_table_commit(struct disk_table *disk);
void disk_table_abandon(struct disk_table *disk);

/* Appends the text that is under the key as of the last change that is committed, of whatever process; of a
 * change under way, of this process too, nothing is seen.  Needs no disk_table_begin and waits for no writer.
 * A text may be returned a moment before the disk_table_commit that makes it durable has returned.
 * `is_there_r` false: there is none, which is no error.  On an error the builder is as before. */
MUST_USE const char *disk_table_get(struct disk_table *disk, struct bytes key, struct builder *text,
                                    bool *is_there_r);

enum disk_table_next { DISK_TABLE_KEEP, DISK_TABLE_REMOVE, DISK_TABLE_STOP };
/* Within a change: all that is there, in the order of keys. */
MUST_USE const char *disk_table_each(struct disk_table *disk,
                                     enum disk_table_next (*take)(void *context, struct bytes key,
                                                                  struct bytes text),
                                     void *context);
/* The same, beginning with this key or, if it is not there, with the next greater one; NO_BYTES: with the
 * first. */
MUST_USE const char *disk_table_each_from(struct disk_table *disk, struct bytes from,
                                          enum disk_table_next (*take)(void *context, struct bytes key,
                                                                       struct bytes text),
                                          void *context);

#endif
