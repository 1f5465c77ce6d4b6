/* percent: percent-encoded text, of paths, query strings and urlencoded forms. */
#ifndef STAMPD_BASE_CODING_PERCENT_H
#define STAMPD_BASE_CODING_PERCENT_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"

/* Decodes percent escapes, and '+' as a space if `plus_is_space`; a text without any is returned itself.
 * FAULT_AARG: a wrong escape, or a NUL; `what_r` names it. */
MUST_USE enum fault percent_decode(struct arena *arena, struct bytes text, bool plus_is_space,
                                   struct bytes *decoded_r, const char **what_r);

#endif
