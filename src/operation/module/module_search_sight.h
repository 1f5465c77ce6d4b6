/* module_search_sight: which rows of a search of a module the caller may be shown (stampd.h, is_judged). */
#ifndef STAMPD_OPERATION_MODULE_MODULE_SEARCH_SIGHT_H
#define STAMPD_OPERATION_MODULE_MODULE_SEARCH_SIGHT_H

#include "edge/json/json.h"
#include "stampd.h"

/* The rows without those that the caller may not be shown, in the arena of the try.  NULL: the try has
 * failed, since a row names no document (BMODULE), or its documents take too much memory (ALIMIT). */
const struct json *module_search_sight(struct stampd_call *call, const char *search, const struct json *rows);

#endif
