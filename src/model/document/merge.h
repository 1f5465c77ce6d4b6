/* merge: JSON merge patches (RFC 7396) on contents, as texts.
 *
 * Members that the patch names are set, or removed where it has null; objects are merged, and everything else
 * is replaced.  What is not named keeps its text and its place; new members come last.  A patch that changes
 * nothing returns the content itself, byte for byte.  Pure. */
#ifndef STAMPD_MODEL_DOCUMENT_MERGE_H
#define STAMPD_MODEL_DOCUMENT_MERGE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"

enum {
    MERGE_DEPTH_MOST = 32,   /* of the objects of a patch */
    MERGE_MEMBERS_MOST = 100 /* of each of them */
};

/* Is it a patch of these bounds: an object? */
bool merge_is_patch(struct arena *arena, struct bytes patch);

/* Both are JSON; the result lives in the arena, or is `content`.  FAULT_ALIMIT: one of them has too many
 * members, or is too deep. */
MUST_USE enum fault merge_apply(struct arena *arena, struct bytes content, struct bytes patch,
                                struct bytes *merged_r);

#endif
