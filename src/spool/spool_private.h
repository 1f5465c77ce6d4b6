/* spool_private: what the files of the library share.
 *
 * A folder has: `spool`, its identity; `board`, where writers go on; `synced`, what is on disk;
 * `acknowledged`; N.segment, the records from number N on; dead/; `lock`, `position` and `forwarder`, empty
 * files to be locked. Locks in this order: lock, synced, position; kernels release them at a death. */
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
    SPOOL_READINGS = 4
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
    ino_t inode; /* the file that it was read from; 0: none */
    struct timespec changed;
};

/* Where writers go on: the segment, its size, the last number; and where this board is: the start of the
 * machine, and the file.  A new board has no place. */
struct spool_board {
    unsigned char place[SPOOL_PLACE_BYTES];
    uint64_t base, end, written;
};

/* What is on disk: all up to `durable`; the numbers of the range were not written when the disk failed. */
struct spool_synced {
    uint64_t durable;
    struct stampd_spool_range broken;
};

struct stampd_spool {
    int folder, lock, synced, board, position_lock, hold, watch; /* descriptors; -1: not open */
    enum stampd_spool_mode mode;
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

/* --- spool_files: durable steps in a folder --- */

int spool_files_lock(int fd);
void spool_files_unlock(int fd);
/* Whole reads and writes.  read: fewer bytes only at the end of the file. */
int spool_files_read(int fd, void *data, size_t size, uint64_t offset, size_t *read_r);
int spool_files_write(int fd, const void *data, size_t size, uint64_t offset);
/* Replaces a file: written beside it, synchronised, renamed, and the folder synchronised. */
int spool_files_replace(int folder, const char *name, mode_t mode, const void *data, size_t size);
/* A whole file of at most `most` bytes, ended by a NUL; the caller frees it. */
int spool_files_load(int folder, const char *name, size_t most, char **data_r, size_t *size_r);
int spool_files_sync(int fd);
/* Grows a buffer; ENOMEM. */
int spool_files_reserve(unsigned char **buffer, size_t *capacity, size_t size);

/* --- spool_segment: one file of records --- */

void spool_segment_name(uint64_t base, char name_r[SPOOL_NAME_BYTES]);
/* The bases of all segments in order; the caller frees them.  `bytes_r`: of all segments. */
int spool_segment_list(int folder, uint64_t **bases_r, size_t *count_r, uint64_t *bytes_r);
int spool_segment_create(const struct stampd_spool *spool, uint64_t base,
                         const unsigned char series[STAMPD_SPOOL_ID_BYTES]);
int spool_segment_open(const struct stampd_spool *spool, uint64_t base, struct spool_segment *segment_r);
void spool_segment_close(struct spool_segment *segment);
/* The next record before `end`, whose number is at most `last`.  EAGAIN: the end; EBADMSG: record_r->first to
 * record_r->sequence are damaged, which continues behind them. */
int spool_segment_read(struct stampd_spool *spool, struct spool_segment *segment, uint64_t end, uint64_t last,
                       struct stampd_spool_record *record_r);

/* --- spool_board --- */

/* EBADMSG: it is not valid. */
int spool_board_read(const struct stampd_spool *spool, struct spool_board *board_r);
int spool_board_write(const struct stampd_spool *spool, struct spool_board *board);
/* Was it written since the last start of the machine, and for this folder? */
int spool_board_is_present(const struct stampd_spool *spool);
int spool_board_read_synced(const struct stampd_spool *spool, struct spool_synced *synced_r);
int spool_board_write_synced(const struct stampd_spool *spool, const struct spool_synced *synced);

/* --- spool_recovery: the lock is held --- */

int spool_recovery_run(struct stampd_spool *spool);
/* Closes the written segment, and begins one, of a new series or of the same. */
int spool_recovery_roll(struct stampd_spool *spool, struct spool_board *board, int is_new_series);

/* --- spool_position --- */

/* Reads the file if it has changed. */
int spool_position_read(struct stampd_spool *spool);
/* The first number behind `after` that is not acknowledged. */
uint64_t spool_position_skip(const struct spool_position *position, uint64_t after);
/* How many up to `last` are. */
uint64_t spool_position_count(const struct spool_position *position, uint64_t last);

#endif
