/* json_scan: finds one member of an object in its text, without building a tree.
 *
 * For decisions that need one member of a content, at each read.  The text was checked when it was written:
 * of a text that is not valid JSON the result has no meaning, but nothing outside the text is read, and a
 * value is one of its kind. */
#ifndef STAMPD_EDGE_JSON_JSON_SCAN_H
#define STAMPD_EDGE_JSON_JSON_SCAN_H

#include "edge/json/json.h"

/* The member `name` of the outermost object.  Arrays and objects are shallow: only their text is known.
 * Allocates only for names and strings with escapes.  False: no object, no such member, or a malformed
 * text. */
MUST_USE bool json_scan_member(struct arena *arena, struct bytes text, struct bytes name,
                               struct json *value_r);

#endif
