/* turns: writers of one host go one after the other at documents that they fight for, where they would refuse
 * each other.  Each slot has a turn, which one process holds at a time; who wants it sleeps until it is given
 * back.
 *
 * A courtesy and no lock: nothing that is right depends on it, the commit verifies everything.  Who finds no
 * turn in time goes on without; one that is held too long, because its owner is slow or dead, is taken over
 * by the next.  A process takes its turns in the order of their slots and never waits against that order, so
 * nobody waits in a circle. */
#ifndef STAMPD_DOCUMENT_TURNS_H
#define STAMPD_DOCUMENT_TURNS_H

#include "base/arena.h"
#include "document/stamps.h"

struct turns; /* those that one operation holds */

/* A turn that another holds for longer than `overdue_ms` is taken over. */
struct turns *turns_create(struct arena *arena, struct stamps *stamps, int64_t overdue_ms);
/* Takes the turns of these slots (any order, doubles allowed) that are not held yet.  Waits for each until
 * `deadline_ms` (monotonic), but for none whose slot is below one that is held already: that is taken only
 * when it is free. */
void turns_take(struct turns *turns, const uint32_t *slots, size_t count, int64_t deadline_ms);
bool turns_has(const struct turns *turns, uint32_t slot);
/* Gives back all of them; also when one was taken over. */
void turns_give(struct turns *turns);

/* Gives back what a former process of this index held when it died. */
void turns_recover(struct stamps *stamps, int index);

#endif
