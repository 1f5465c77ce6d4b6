/* condition: If-Match and If-None-Match (RFC 9110, 13.1) as conditions on the version of a document.  The
 * entity tag of a version is its number in quotes; under a view (model/document/view.h) "number-name"; that
 * of an attachment is its digest, 64 digits. */
#ifndef STAMPD_HTTP_CONDITION_H
#define STAMPD_HTTP_CONDITION_H

#include "operation/call.h"

/* If-Match compares strongly: a weak tag matches nothing.  If-None-Match compares weakly: W/ is ignored. */
enum comparison { COMPARE_STRONGLY, COMPARE_WEAKLY };

/* Reads a field: "*" or a list of tags; an empty field counts as absent.  Tags not made by this server match
 * nothing.  FAULT_AARG: neither. */
MUST_USE enum fault condition_read(struct arena *arena, struct bytes field, enum comparison comparison,
                                   struct version_condition *condition_r);

#endif
