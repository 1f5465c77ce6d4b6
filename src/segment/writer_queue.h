/* writer_queue: serialises local writers of a contended document.  Each slot has a turn, which one process
 * holds at a time; a process that needs it sleeps until it is returned.
 *
 * Advisory: correctness never depends on it, since the commit verifies everything.  A writer that gets no
 * turn in time continues without one; a turn held too long, because its owner is slow or dead, is taken
 * over by the next writer.  A process takes its turns in the order of their slots and never waits against
 * that order, which rules out deadlocks. */
#ifndef STAMPD_SEGMENT_WRITER_QUEUE_H
#define STAMPD_SEGMENT_WRITER_QUEUE_H

#include "base/arena.h"
#include "segment/segment.h"

struct writer_queue; /* the turns that one operation holds */

/* A turn that another process holds for longer than `overdue_ms` is taken over. */
struct writer_queue *writer_queue_create(struct arena *arena, struct segment *segment, int64_t overdue_ms);
/* Takes the turns of these slots (in any order, duplicates allowed) that are not held yet.  Waits for each
 * until `deadline_ms` (monotonic), except for a slot below one already held: its turn is taken only if it
 * is free. */
void writer_queue_take(struct writer_queue *writer_queue, const uint32_t *slots, size_t count,
                       int64_t deadline_ms);
bool writer_queue_has(const struct writer_queue *writer_queue, uint32_t slot);
/* Returns all turns, including those taken over by another process. */
void writer_queue_give(struct writer_queue *writer_queue);

/* Returns the turns that the former process of this index held when it died. */
void writer_queue_recover(struct segment *segment, int index);

/* The word of the slot's turn. */
_Atomic uint32_t *writer_queue_word(const struct segment *segment, uint32_t slot);

/* For board.c. */
size_t writer_queue_size(const struct board_sizes *sizes);
void writer_queue_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
