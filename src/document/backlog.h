/* backlog: the last look at the tasks of a namespace, in shared memory, so that metrics ask no database.
 * Memory that is zero says that nobody has looked.
 *
 * Each number is whole; two of them may be of two looks that came together. */
#ifndef STAMPD_DOCUMENT_BACKLOG_H
#define STAMPD_DOCUMENT_BACKLOG_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/bytes.h"

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
    _Atomic int64_t numbers[BACKLOG_QUEUES][sizeof(struct backlog_numbers) / sizeof(int64_t)];
};

/* How old the look is; -1: nobody has looked. */
int64_t backlog_age_ms(const struct backlog *backlog, int64_t now_ms);
/* A look: numbers of all queues of the namespace with this code. */
void backlog_write(struct backlog *backlog, struct bytes code,
                   const struct backlog_numbers numbers[BACKLOG_QUEUES], int64_t now_ms);
/* After a look: the code, and the numbers of a queue; false: it never had a task. */
void backlog_read_code(const struct backlog *backlog, char code_r[BACKLOG_CODE_BYTES + 1]);
bool backlog_read(const struct backlog *backlog, int queue, struct backlog_numbers *numbers_r);

#endif
