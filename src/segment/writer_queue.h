/* turns: writers of one host go one after the other at documents that they fight for, where they would refuse
 * each other.  Each slot has a turn, which one process holds at a time; who wants it sleeps until it is given
 * back.
 *
 * A courtesy and no lock: nothing that is right depends on it, the commit verifies everything.  Who finds no
 * turn in time goes on without; one that is held too long, because its owner is slow or dead, is taken over
 * by the next.  A process takes its turns in the order of their slots and never waits against that order, so
 * nobody waits in a circle. */
#ifndef STAMPD_SEGMENT_WRITER_QUEUE_H
#define STAMPD_SEGMENT_WRITER_QUEUE_H

#include "base/arena.h"
#include "segment/slots.h"

struct writer_queue; /* those that one operation holds */

/* A turn that another holds for longer than `overdue_ms` is taken over. */
struct writer_queue *writer_queue_create(struct arena *arena, struct segment *segment, int64_t overdue_ms);
/* Takes the turns of these slots (any order, doubles allowed) that are not held yet.  Waits for each until
 * `deadline_ms` (monotonic), but for none whose slot is below one that is held already: that is taken only
 * when it is free. */
void writer_queue_take(struct writer_queue *writer_queue, const uint32_t *slots, size_t count,
                       int64_t deadline_ms);
bool writer_queue_has(const struct writer_queue *writer_queue, uint32_t slot);
/* Gives back all of them; also when one was taken over. */
void writer_queue_give(struct writer_queue *writer_queue);

/* Gives back what a former process of this index held when it died. */
void writer_queue_recover(struct segment *segment, int index);

#endif
