/* condition: If-Match and If-None-Match (RFC 9110, 13.1) as conditions on the version of a document.  The
 * entity tag of a version is its number in quotes. */
#ifndef STAMPD_SERVE_CONDITION_H
#define STAMPD_SERVE_CONDITION_H

#include "operation/call.h"

/* If-Match compares strongly: a weak tag names nothing.  If-None-Match compares weakly: W/ does not count. */
enum comparison { COMPARE_STRONGLY, COMPARE_WEAKLY };

/* Reads the field, "*" or a list of tags; an empty one is not given.  Tags that are not ours name nothing.
 * FAULT_AARG: it is neither. */
MUST_USE enum fault condition_read(struct arena *arena, struct bytes field, enum comparison comparison,
                                   struct version_condition *condition_r);

#endif
