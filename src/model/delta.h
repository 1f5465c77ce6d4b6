/* delta: what brings a holder's copy of a document up to date (seed 000, "Mémoires persistante de référence
 * et cache", cases 1 and 2), and its application to a holder's copy.  Pure.
 *
 *   source does not exist    header with v 0 only
 *   nothing held, other life complete copy: live items, no tombstone; dt = the highest tombstone, or dtime
 *   v >= dtime (case 1)      items and tombstones newer than v; dt = max(dt held, dtime)
 *   v < dtime (case 2)       the same, and `clkeys`: the live items that are not newer; dt = dtime
 *   v > the source's version (older source, restored database) case 2 with v 0: `clkeys` is empty, all comes
 */
#ifndef STAMPD_MODEL_DELTA_H
#define STAMPD_MODEL_DELTA_H

#include "base/base.h"
#include "base/bytes.h"
#include "model/document.h"

/* What the holder says it has; version 0: nothing. */
struct held {
    int64_t version, ctime, dtime;
};

struct delta {
    const struct document *source; /* items and header come from it; must live as long */
    int64_t dtime;                 /* the holder's new dtime */
    int64_t since;                 /* items with a version above this are in */
    bool with_tombstones;          /* tombstones above `since` are in */
    bool with_keys;                /* the live items up to `since` are listed by class and key */
};

struct delta delta_compute(const struct document *source, struct held held);

/* Is there anything to be carried?  A document that does not exist is not. */
bool delta_is_empty(const struct delta *delta);
/* At least as many bytes as delta_write_json appends. */
size_t delta_size(const struct delta *delta);

/* Appends {"c","id","v","ct","dt","items":[…],"dels":[…]} and `clkeys` in case 2; of a document that does not
 * exist {"c","id","v":0,"ct":0,"dt":0}.  An unchanged document costs one copy of the ready header. */
void delta_write_json(const struct delta *delta, struct builder *builder);

/* The holder's copy after the delta; `copy` may be NULL (nothing held).  A new snapshot, which may be a
 * source for others; of a document that does not exist with version 0. */
struct document *delta_apply(const struct delta *delta, const struct document *copy)
    __attribute__((returns_nonnull));

#endif
