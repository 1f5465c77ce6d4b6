/* names: checks names against a list of known names and suggests the nearest for an unknown one.
 *
 * Known names stand in one text, separated by blanks: "c id if items".  Every object that a client sends is
 * checked against such a list, so that a misspelt member is refused, not ignored. */
#ifndef STAMPD_BASE_NAMES_H
#define STAMPD_BASE_NAMES_H

#include "base/builder.h"

/* Is `name` one of them? */
bool names_have(const char *known, struct bytes name);

/* The known name nearest to `name`, ignoring case; NO_BYTES: none is near. */
struct bytes names_nearest(const char *known, struct bytes name);

/* Appends one sentence: `Unknown member "If"; did you mean "if"?`, or, when no name is near, the list of
 * known names.  `kind` is the word for the named thing; a long name is shortened. */
void names_explain(const char *known, const char *kind, struct bytes name, struct builder *text);

#endif
