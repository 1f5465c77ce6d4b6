/* names: which names are known at a place, and which of them was meant by one that is not.
 *
 * Known names stand in one text, divided by blanks: "c id if items".  Every object that a client sends is
 * compared with such a list, so that a misspelt member is refused, not ignored. */
#ifndef STAMPD_BASE_NAMES_H
#define STAMPD_BASE_NAMES_H

#include "base/bytes.h"

/* Is `name` one of them? */
bool names_have(const char *known, struct bytes name);

/* The known name that differs least from `name`, letters' case aside; NO_BYTES: none is near. */
struct bytes names_nearest(const char *known, struct bytes name);

/* Appends one sentence: `Unknown member "If"; did you mean "if"?`, or, when nothing is near, which names are
 * known.  `kind` is the word for what bears the name; a long name is shortened. */
void names_explain(const char *known, const char *kind, struct bytes name, struct builder *text);

#endif
