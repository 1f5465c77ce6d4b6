/* backlog: the last look at the tasks of a namespace, in shared memory, so that metrics ask no database.
 * Memory that is zero says that nobody has looked.
 *
 * Each number is whole; two of them may be of two looks that came together. */
#ifndef STAMPD_SEGMENT_BACKLOG_H
#define STAMPD_SEGMENT_BACKLOG_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/bytes.h"
#include "segment/board.h"

enum { BACKLOG_QUEUES = 16, BACKLOG_CODE_BYTES = 16 };

struct backlog_numbers {
    int64_t due, later, running, parked, failing;
    int64_t oldest; /* stamp: the first start of those due; 0: none is */
};
/* For backlog.c and the layout of the segment only. */
struct backlog {
    _Alignas(64) _Atomic int64_t looked_ms; /* monotonic; 0: never */
    _Atomic uint64_t code[BACKLOG_CODE_BYTES / 8];
    _Atomic uint32_t queues_seen; /* a bit for each that ever had a task */
    _Atomic uint32_t wanted;      /* wake-ups to be sent */
    _Atomic uint64_t lost;        /* wake-ups that a full socket did not take */
    _Atomic uint64_t expired;     /* parked tasks that were deleted */
    _Atomic int64_t low;          /* stamp: nothing waits with an earlier start; 0: not known */
    _Atomic int64_t whole_ms;     /* monotonic: of the last scan that looked from the beginning; 0 */
    _Atomic int64_t numbers[BACKLOG_QUEUES][sizeof(struct backlog_numbers) / sizeof(int64_t)];
};

/* Who is to be woken, because tasks of the namespace start soon: the manager of this host, whose socket was
 * full; the managers of other hosts. */
enum backlog_whom { BACKLOG_LOCAL = 1, BACKLOG_REMOTE = 2 };
void backlog_want(struct backlog *backlog, struct bytes code, enum backlog_whom whom);
/* Takes the wish; false: there is none, or the code is not known yet. */
bool backlog_take(struct backlog *backlog, enum backlog_whom whom, char code_r[BACKLOG_CODE_BYTES + 1]);

/* A scan begins: from which start on it looks, so as to read no rows of tasks that were done before; 0: from
 * the beginning, now and then and whenever nothing is known.  It ends: the earliest start that it has seen
 * wait, STAMP_MAX: none; 0: it has failed.  Whoever makes a task wait with an earlier start says so. */
int64_t backlog_begin_scan(struct backlog *backlog, int64_t now_ms);
void backlog_end_scan(struct backlog *backlog, int64_t oldest);
void backlog_lower(struct backlog *backlog, int64_t start);

/* How old the look is; -1: nobody has looked. */
int64_t backlog_age_ms(const struct backlog *backlog, int64_t now_ms);
/* A look: numbers of all queues of the namespace with this code. */
void backlog_write(struct backlog *backlog, struct bytes code,
                   const struct backlog_numbers numbers[BACKLOG_QUEUES], int64_t now_ms);
/* A task is claimed: when the last look counted it among those due, it is so no more.  Of none that is due
 * the oldest is none. */
void backlog_begin_task(struct backlog *backlog, int queue, int64_t start, int64_t created, int64_t now_ms);
/* After a look: the code, and the numbers of a queue; false: it never had a task. */
void backlog_read_code(const struct backlog *backlog, char code_r[BACKLOG_CODE_BYTES + 1]);
bool backlog_read(const struct backlog *backlog, int queue, struct backlog_numbers *numbers_r);

/* What was last known of the tasks of a namespace. */
struct backlog *backlog_of(const struct segment *segment, int ns);

/* For board.c. */
size_t backlog_size(const struct board_sizes *sizes);
void backlog_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
