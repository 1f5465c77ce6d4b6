/* search_prefix: the range of texts that begin with a prefix. */
#ifndef STAMPD_MODEL_SCHEMA_SEARCH_PREFIX_H
#define STAMPD_MODEL_SCHEMA_SEARCH_PREFIX_H

#include "base/arena.h"
#include "base/bytes.h"

/* The first text, in the order of code points, after all that start with `prefix`; false: there is none (the
 * prefix is empty or contains only U+10FFFF).  `prefix` is UTF-8. */
MUST_USE bool search_prefix_end(struct arena *arena, struct bytes prefix, struct bytes *end_r);

#endif
