/* backlog: the last snapshot of the task queues of a namespace, in shared memory, so that metrics query no
 * database.  Zeroed memory means that no snapshot was taken yet.
 *
 * Each number is read whole; two numbers may come from two concurrent snapshots. */
#ifndef STAMPD_SEGMENT_COUNTS_BACKLOG_H
#define STAMPD_SEGMENT_COUNTS_BACKLOG_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/bytes.h"
#include "segment/segment.h"

enum { BACKLOG_QUEUES = 32, BACKLOG_CODE_BYTES = 16, BACKLOG_SCANS = 4 };

struct backlog_numbers {
    int64_t due, later, running, parked, failing;
    int64_t oldest; /* stamp: the earliest start among the tasks due; 0: none is due */
};
/* For backlog.c and the layout of the segment only. */
struct backlog {
    _Alignas(64) _Atomic int64_t looked_ms; /* monotonic; 0: never */
    _Atomic uint64_t code[BACKLOG_CODE_BYTES / 8];
    _Atomic uint32_t queues_seen;  /* a bit for each queue that ever had a task */
    _Atomic uint32_t wanted;       /* wake-ups to be sent */
    _Atomic uint64_t offers;       /* moves when external workers may find another task */
    _Atomic uint64_t lost;         /* wake-ups that a full socket did not take */
    _Atomic uint64_t expired;      /* parked tasks that were deleted */
    _Atomic uint64_t scans, known; /* scans begun; the last that has ended */
    struct backlog_known {
        _Atomic int64_t low;  /* stamp: nothing waits with an earlier start */
        _Atomic int64_t mark; /* for as long as it is that of table task_early */
        _Atomic int64_t base; /* stamp: transactions that the scan did not see have later starts */
        _Atomic int64_t next_base, next_transaction; /* the next base, when all up to this one have ended */
    } found[BACKLOG_SCANS];                          /* by the number of the scan */
    _Atomic int64_t whole_ms; /* monotonic: the last scan from the beginning; 0: none */
    _Atomic int64_t numbers[BACKLOG_QUEUES][sizeof(struct backlog_numbers) / sizeof(int64_t)];
};

/* Whom to wake because tasks of the namespace start soon: the manager of this host, whose socket was full;
 * the managers of other hosts. */
enum backlog_whom { BACKLOG_LOCAL = 1, BACKLOG_REMOTE = 2 };
void backlog_want(struct backlog *backlog, struct bytes code, enum backlog_whom whom);
/* Takes the pending wake-up; false: there is none, or the code is not known yet, and the wake-up stays until
 * it is. */
bool backlog_take(struct backlog *backlog, enum backlog_whom whom, char code_r[BACKLOG_CODE_BYTES + 1]);

/* External workers may find another task: requests that wait for one look again. */
void backlog_offer(struct backlog *backlog);
uint64_t backlog_offers(const struct backlog *backlog);

/* A scan reads tasks from the start `since`, so that it skips the rows of finished tasks, if the database
 * still has this mark; 0: from the beginning, which happens periodically and whenever nothing is known. Why
 * it misses none, whichever host creates it: doc/explanation/why-tasks-happen-once.md. */
struct backlog_scan {
    uint64_t number;
    int64_t since, mark, base, next_base, next_transaction; /* as in struct backlog_known */
};
/* What a scan has found, all in one snapshot. */
struct backlog_bound {
    int64_t oldest;      /* the earliest start that waits; STAMP_MAX: none */
    int64_t mark;        /* of table task_early; 0: none */
    int64_t running;     /* the oldest transaction under way */
    int64_t start;       /* later transactions than `transaction` create no earlier start without a mark */
    int64_t transaction; /* begun after the snapshot */
};
struct backlog_scan backlog_begin_scan(struct backlog *backlog, int64_t now_ms);
/* Not called after a scan that failed: the next then reads from the beginning, as does one that begins
 * before the end of another. */
void backlog_end_scan(struct backlog *backlog, const struct backlog_scan *scan,
                      const struct backlog_bound *bound);

/* Age of the snapshot; -1: there is none yet. */
int64_t backlog_age_ms(const struct backlog *backlog, int64_t now_ms);
/* Stores a snapshot: the numbers of all queues of the namespace with this code. */
void backlog_write(struct backlog *backlog, struct bytes code,
                   const struct backlog_numbers numbers[BACKLOG_QUEUES], int64_t now_ms);
/* A task is claimed: if the last snapshot counted it as due, it is subtracted.  When no task is due, there
 * is no oldest one. */
void backlog_begin_task(struct backlog *backlog, int queue, int64_t start, int64_t created, int64_t now_ms);
/* Of the last snapshot: the code, and the numbers of a queue; false: the queue never had a task. */
void backlog_read_code(const struct backlog *backlog, char code_r[BACKLOG_CODE_BYTES + 1]);
bool backlog_read(const struct backlog *backlog, int queue, struct backlog_numbers *numbers_r);

/* The backlog of a namespace. */
struct backlog *backlog_of(const struct segment *segment, int ns);

/* For board.c. */
size_t backlog_size(const struct board_sizes *sizes);
void backlog_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
