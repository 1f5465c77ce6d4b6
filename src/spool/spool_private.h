/* spool_private: what the files of the library share.
 *
 * A folder has: `spool`, its identity; `board`, where writers go on; `synced`, what is on disk;
 * `acknowledged` and acknowledged.other, which are written in turn; N.segment, the records from number N on;
 * dead/; `lock`, `next`, `position` and `forwarder`, empty files to be locked. Locks in this order: lock,
 * next, synced, position; kernels release them at a death. */
#ifndef STAMPD_SPOOL_SPOOL_PRIVATE_H
#define STAMPD_SPOOL_SPOOL_PRIVATE_H

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "spool/spool_record.h"
#include "spool/spool_step.h"
#include "spool/stampd_spool.h"

#define SPOOL_SEGMENT_SUFFIX ".segment"
#define SPOOL_DEAD           "dead"
enum {
    SPOOL_SEGMENT_HEAD = 128,
    SPOOL_RANGES_MOST = 4096,
    SPOOL_NAME_BYTES = 40,
    SPOOL_PLACE_BYTES = 52,
    SPOOL_READINGS = 4,
    SPOOL_CHUNK = 1 << 20 /* bytes by which a segment is allocated in advance */
};

/* A segment that is read, or written to. */
struct spool_segment {
    int fd; /* -1: none is open */
    uint64_t base;
    unsigned char series[STAMPD_SPOOL_ID_BYTES];
    int is_damaged;  /* both copies of its head are */
    uint64_t last;   /* its last number; 0: it grows */
    uint64_t offset; /* of the next record to read */
    uint64_t expected;
};

/* Acknowledged numbers: ranges in order, with gaps between them. */
struct spool_position {
    struct stampd_spool_range *ranges;
    size_t count;
    uint64_t edition;        /* each is one more than that before; 0: none was valid */
    uint64_t synced_edition; /* this handle has synchronised it */
    int newest;              /* which of the two files it was read from */
    ino_t inode;             /* of the other file, which is written next; 0: neither was read */
    struct timespec changed;
};

/* Where writers go on: the segment, its size, the last number; and where this board is: the start of the
 * machine, and the file.  A new board has no place.
 *
 * `arrived` counts writers that come back: each when it appends after it has waited for all that it appended
 * before, so once for as much as it appends without a wait.  Those that do not wait, wait for a part, or have
 * just opened the spool are not counted. */
struct spool_board {
    unsigned char place[SPOOL_PLACE_BYTES];
    uint64_t base, end, written, arrived;
};

/* What is on disk: all up to `durable`, but perhaps what is in the range `broken`: the disk failed.  The
 * others are for the next sync: `arrived` of the board when the last one began, how many writers there seem
 * to be, and what the last one took. */
struct spool_synced {
    uint64_t durable;
    struct stampd_spool_range broken;
    uint64_t arrived;
    uint32_t writers, sync_us;
    uint32_t round; /* counts the syncs; those that wait for one sleep on it */
};

struct stampd_spool {
    int folder, lock, next, synced, board, position_lock, hold, watch; /* descriptors; -1: not open */
    const unsigned char *shared, *shared_board; /* `synced` and `board` in memory, to be read only */
    struct stampd_spool *earlier, *later;       /* open handles of the process */
    enum stampd_spool_mode mode;
    uint64_t last;         /* number that this handle appended last */
    uint64_t arrival;      /* its number when it was counted last as a writer that comes back */
    int has_waited;        /* for all that it appended, and did: its next record counts it */
    int64_t rest_until_us; /* until then it leaves the lock to others, after it had it for long; 0: not */
    pid_t owner;
    mode_t file_mode;
    unsigned char id[STAMPD_SPOOL_ID_BYTES];
    struct stampd_spool_limits limits;
    struct spool_segment writing;
    /* Where reading goes on, the last used first: whoever reads ahead and goes back does not begin at the
     * start of the segment each time. */
    struct spool_segment readings[SPOOL_READINGS];
    struct spool_position position;
    unsigned char *buffer, *read_buffer, *dead_buffer;
    size_t buffer_bytes, read_bytes, dead_bytes;
};

/* --- spool_files: locks, and durable steps in a folder --- */

/* Of the monotonic clock: now, and when a wait that begins now ends. */
int64_t spool_files_now_us(void);
int64_t spool_files_limit_us(void);
/* ETIMEDOUT: another had it for spool_step_lock_ms; it may be stopped.  `soon` is for one that is held for
 * microseconds. */
int spool_files_lock(int fd);
int spool_files_lock_soon(int fd);
/* EWOULDBLOCK: another has it; `often`: some tries later, still. */
int spool_files_try_lock(int fd);
int spool_files_try_often(int fd);
void spool_files_unlock(int fd);
/* Whole reads and writes.  read: fewer bytes only at the end of the file. */
int spool_files_read(int fd, void *data, size_t size, uint64_t offset, size_t *read_r);
int spool_files_write(int fd, const void *data, size_t size, uint64_t offset);
/* Replaces a file: written beside it, synchronised, renamed, and the folder synchronised. */
int spool_files_replace(int folder, const char *name, mode_t mode, const void *data, size_t size);
/* Writes a file in its own place, so that a disk that is full has room for a text that is no longer than a
 * block, or than the one before, and synchronises it.  After an error, and while it is written, it has no
 * valid text. */
int spool_files_rewrite(int folder, const char *name, mode_t mode, const void *data, size_t size);
/* Synchronises a file that another may have written, with its name. */
int spool_files_sync_again(int folder, const char *name);
/* A whole file of at most `most` bytes, ended by a NUL; the caller frees it. */
int spool_files_load(int folder, const char *name, size_t most, char **data_r, size_t *size_r);
int spool_files_sync(int fd);
/* Grows a buffer; ENOMEM. */
int spool_files_reserve(unsigned char **buffer, size_t *capacity, size_t size);

/* --- spool_segment: one file of records --- */

void spool_segment_name(uint64_t base, char name_r[SPOOL_NAME_BYTES]);
/* The bases of all segments in order; the caller frees them.  `bytes_r`: of all segments; that of the board
 * (NULL: none) is counted up to its end. */
int spool_segment_list(int folder, const struct spool_board *board, uint64_t **bases_r, size_t *count_r,
                       uint64_t *bytes_r);
int spool_segment_create(const struct stampd_spool *spool, uint64_t base,
                         const unsigned char series[STAMPD_SPOOL_ID_BYTES]);
int spool_segment_open(const struct stampd_spool *spool, uint64_t base, struct spool_segment *segment_r);
void spool_segment_close(struct spool_segment *segment);
/* The next record before `end`, whose number is at most `last`.  EAGAIN: the end; EBADMSG: record_r->first to
 * record_r->sequence are damaged, which continues behind them. */
int spool_segment_read(struct stampd_spool *spool, struct spool_segment *segment, uint64_t end, uint64_t last,
                       struct stampd_spool_record *record_r);

/* --- the tail of the written file --- */

/* Makes the written file, of `size` bytes, longer by zeros, where a record of so many bytes at `end` would
 * make it grow.  A disk without much room is left alone. */
void spool_tail_allocate(const struct stampd_spool *spool, uint64_t size, uint64_t end, uint64_t bytes);
/* Ends a file of `size` bytes here. */
int spool_tail_cut(int fd, uint64_t size, uint64_t end);
/* The size without the zeros at the end of the file. */
int spool_tail_measure(int fd, uint64_t size, uint64_t *end_r);

/* --- spool_board --- */

/* EBADMSG: it is not valid. */
int spool_board_read(const struct stampd_spool *spool, struct spool_board *board_r);
int spool_board_write(const struct stampd_spool *spool, struct spool_board *board);
/* Was it written since the last start of the machine, and for this folder? */
int spool_board_is_present(const struct stampd_spool *spool);

/* --- spool_shared: what processes have in memory, and sleep on --- */

int spool_shared_map(struct stampd_spool *spool);
void spool_shared_unmap(struct stampd_spool *spool);
/* Copies bytes of which the last four are the CRC of the others, while another may write them.  EBADMSG: they
 * are damaged. */
int spool_shared_copy(const unsigned char *memory, unsigned char *bytes_r, size_t size);
/* One that is damaged is empty. */
void spool_shared_read(const struct stampd_spool *spool, struct spool_synced *synced_r);
int spool_shared_write(const struct stampd_spool *spool, const struct spool_synced *synced);
/* The disk has failed: what it does not have up to this number may be lost. */
void spool_shared_break(struct spool_synced *synced, uint64_t last);
/* Writes it, and the round ends. */
int spool_shared_end_round(const struct stampd_spool *spool, struct spool_synced *synced);
/* Wakes those that slept in the round that has ended; without a lock, for they take it. */
void spool_shared_wake(const struct stampd_spool *spool);
/* Sleeps until this round ends, or for so long. */
void spool_shared_sleep(const struct stampd_spool *spool, uint32_t round, int64_t us);
/* Takes the lock of `synced`, which those that end a round release then.  ETIMEDOUT: not until this time. */
int spool_shared_lock(const struct stampd_spool *spool, int64_t limit_us);
/* From now on the writer with this number (`arrived` of the board) wakes the one that gathers. */
int spool_shared_expect(const struct stampd_spool *spool, uint64_t target, uint32_t *seen_r);
/* Sleeps until it has since `seen`, or for so many microseconds. */
void spool_shared_gather(const struct stampd_spool *spool, uint32_t seen, uint32_t us);
/* Of each writer that is counted: is it the target? */
void spool_shared_arrive(const struct stampd_spool *spool, uint64_t arrival);

/* --- spool_wait --- */

/* stampd_spool_wait, of the process that owns the handle.  ETIMEDOUT: no sync has ended for
 * spool_step_lock_ms; the records may be there, and will be read. */
int spool_wait_durable(struct stampd_spool *spool, const struct stampd_spool_range *range);

/* --- handles and forks --- */

/* From now on a child of the process closes the files of the handle. */
int spool_handle_add(struct stampd_spool *spool);
/* Closes all files. */
void spool_handle_remove(struct stampd_spool *spool);

/* --- spool_recovery: the lock is held --- */

int spool_recovery_run(struct stampd_spool *spool);
/* Closes the written segment, and begins one, of a new series or of the same. */
int spool_recovery_roll(struct stampd_spool *spool, struct spool_board *board, int is_new_series);

/* --- spool_position --- */

/* The files of a new spool. */
int spool_position_create(int folder, mode_t mode);
/* Reads the files if they have changed; `again`: also if they seem not to have, within a tick of the clock.
 */
int spool_position_read(struct stampd_spool *spool);
int spool_position_read_again(struct stampd_spool *spool);
/* The first number behind `after` that is not acknowledged. */
uint64_t spool_position_skip(const struct spool_position *position, uint64_t after);
/* The last number up to `last` that is not. */
uint64_t spool_position_trim(const struct spool_position *position, uint64_t last);
/* How many up to `last` are. */
uint64_t spool_position_count(const struct spool_position *position, uint64_t last);

#endif
