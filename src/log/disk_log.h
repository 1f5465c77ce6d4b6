/* disk_log: changes appended to one file, each durable after one write and one sync.
 *
 * The file has a fixed size and is filled with zeros when it is created, so that a sync writes data and no
 * metadata.  Behind a block with the layout stand the changes, one after the other, each with its size, its
 * number, CRC-32C of its head and of its body, and the epoch that it belongs to.  A new epoch begins again at
 * the first place: what stands there of former epochs is overwritten, and is no longer part of the log.  The
 * owner of the log (disk_table.c) keeps the epoch elsewhere, and lets one process write at a time.
 *
 * Each process reads what the others have appended.  A change that was cut, because its writer was killed or
 * the host failed, is no change; the next one is written over it. */
#ifndef STAMPD_LOG_DISK_LOG_H
#define STAMPD_LOG_DISK_LOG_H

#include "base/bytes.h"

/* Number 0: none.  The salt is random: a client cannot write what looks like a change. */
struct disk_epoch {
    uint64_t number, salt;
};

struct disk_log;

enum disk_log_opened { DISK_LOG_OPENED, DISK_LOG_ABSENT, DISK_LOG_REFUSED };
/* Of the file `log` in this folder.  REFUSED: one line in `problem`. */
MUST_USE enum disk_log_opened disk_log_open(struct disk_log **log_r, const char *folder, char *problem,
                                            size_t problem_size);
/* Creates the file, with room for about `bytes` of changes.  Only the process that may write may do so.
 * False: there is no file; errno. */
MUST_USE bool disk_log_create(const char *folder, size_t bytes);
void disk_log_close(struct disk_log *log); /* NULL is allowed */

/* All of it, as long as it is open. */
struct bytes disk_log_view(const struct disk_log *log);
/* From now on that of this epoch, from its first change on. */
void disk_log_begin(struct disk_log *log, struct disk_epoch epoch);
/* Are the changes that this process has read still in the log?  Else the last of them was taken back. */
bool disk_log_is_same(const struct disk_log *log);

enum disk_log_next {
    DISK_LOG_CHANGE,
    DISK_LOG_END,
    DISK_LOG_BROKEN /* nothing may be appended in this epoch: a sync has failed */
};
enum disk_log_next disk_log_next(struct disk_log *log, struct bytes *change_r);
/* Behind the last change that can be read: is there another one of this epoch?  Then what lies between is
 * damaged, which no death of a writer explains; disk_log_next goes on behind it. */
bool disk_log_skip_damage(struct disk_log *log, uint64_t *changes_r);
/* Does the file begin with a change of an epoch that is not before this one, nor is it? */
bool disk_log_is_foreign(const struct disk_log *log, struct disk_epoch epoch);

/* Only the process that may write, when disk_log_next has returned END. */
bool disk_log_has_room(const struct disk_log *log, size_t size);
/* Durable; what disk_log_next would return, in `change_r`.  NULL, or why not: then the log is as it was
 * before, or, if the sync has failed, broken. */
MUST_USE const char *disk_log_append(struct disk_log *log, struct bytes body, struct bytes *change_r);
/* Nothing may be appended in this epoch any more. */
void disk_log_break(struct disk_log *log);

/* The calls of the system, which tests replace. */
extern struct disk_log_system {
    ssize_t (*write)(int fd, const void *data, size_t size, off_t at);
    int (*sync)(int fd);
} disk_log_system;

#endif
