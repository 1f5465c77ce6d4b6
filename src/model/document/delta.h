/* delta: the changes that bring a client's copy of a document up to date (protocol.md, "Keeping
 * copies"), and their application to a copy.  Pure.
 *
 * - source does not exist               header with v 0 only
 * - no copy, or of another incarnation  complete copy: live items, no tombstone
 *                                       dt = the highest tombstone, or dtime
 * - v >= dtime (case 1)                 items and tombstones newer than v; dt = max(dt of the copy, dtime)
 * - v < dtime (case 2)                  the same, and `clkeys`: the live items that are not newer; dt = dtime
 * - v > the source's version            (older source, restored database) case 2 with v 0: `clkeys` is empty,
 *                                       all items are sent
 * - a copy under another view           the same: what the caller no longer sees goes with the copy */
#ifndef STAMPD_MODEL_DOCUMENT_DELTA_H
#define STAMPD_MODEL_DOCUMENT_DELTA_H

#include "base/base.h"
#include "base/builder.h"
#include "model/document/document.h"
#include "model/document/view.h"

/* The state of the client's copy, as the client sent it; version 0: no copy. */
struct client_copy {
    int64_t version, ctime, dtime;
};

struct delta {
    const struct document *source; /* source of items and header; must live as long */
    int64_t version;               /* the copy's new version: that of the source, or of its view */
    int64_t dtime;                 /* the copy's new dtime */
    int64_t since;                 /* items with a version above this are included */
    bool with_tombstones;          /* tombstones above `since` are included */
    bool with_keys;                /* the live items up to `since` are listed by class and key */
    const struct view *view;       /* what the client sees of the source; NULL: all of it */
};

struct delta delta_compute(const struct document *source, struct client_copy held);
/* The same for a client that sees the source under a view, which must live as long, and whose copy was of the
 * view `held_view` (view_name). */
struct delta delta_compute_view(const struct document *source, struct client_copy held,
                                struct bytes held_view, const struct view *view);

/* Does the delta carry nothing?  Also true for a document that does not exist. */
bool delta_is_empty(const struct delta *delta);
/* An upper bound of the bytes that delta_write_json appends. */
size_t delta_size(const struct delta *delta);

/* Appends {"c","id","v","ct","dt","items":[…],"dels":[…]}, `w` before `items` if the view hides something,
 * and `clkeys` in case 2; for a document that does not exist {"c","id","v":0,"ct":0,"dt":0}.  An unchanged
 * document costs one copy of the prepared header. */
void delta_write_json(const struct delta *delta, struct builder *builder);

/* Returns the client's copy after the delta; `copy` may be NULL (no copy).  A new snapshot, which may be a
 * source for other deltas; version 0 for a document that does not exist. */
struct document *delta_apply(const struct delta *delta, const struct document *copy)
    __attribute__((returns_nonnull));

#endif
