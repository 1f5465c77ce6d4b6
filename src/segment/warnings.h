/* warnings: the last warnings and errors of all processes of this host that share the segment: a ring that
 * the log fills and administrators read (operation `warnings`).  It outlives the processes, not the segment.
 *
 * Writers never wait: each takes the next entry and fills it.  An entry that is being written, or that two
 * writers have filled at once, does not match its checksum and is skipped by readers. */
#ifndef STAMPD_SEGMENT_WARNINGS_H
#define STAMPD_SEGMENT_WARNINGS_H

#include <stdatomic.h>

#include "base/log.h"
#include "segment/segment.h"

enum { WARNINGS_KEPT = 256, WARNINGS_WORDS = 60, WARNING_BYTES = WARNINGS_WORDS * 8 };

/* For warnings.c and the layout of the segment only. */
struct warnings_board {
    _Alignas(64) _Atomic uint64_t next;
    struct warning_entry {
        _Alignas(64) _Atomic uint64_t sum; /* 0: empty, or being written; written last */
        _Atomic uint64_t number, at_ms, who;
        _Atomic uint64_t text[WARNINGS_WORDS];
    } entries[WARNINGS_KEPT];
};

struct warning {
    int64_t at_ms; /* since the epoch */
    enum log_level level;
    int pid;
    char text[WARNING_BYTES + 1]; /* valid UTF-8 without control characters; what is longer was cut */
};

/* From now on the log of this process, and of those that it forks, also goes into the ring. */
void warnings_start(struct segment *segment);
/* Before the segment is closed. */
void warnings_stop(void);
/* The last ones, newest first, at most `most`; returns how many. */
size_t warnings_read(const struct segment *segment, struct warning *warnings, size_t most);

/* For board.c. */
size_t warnings_size(const struct board_sizes *sizes);
void warnings_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
