/* module_filter: filters of modules (stampd_filter.h), as the engine runs them (operation/judge/filters.h).
 */
#ifndef STAMPD_OPERATION_MODULE_MODULE_FILTER_H
#define STAMPD_OPERATION_MODULE_MODULE_FILTER_H

#include "base/base.h"
#include "stampd_filter.h"

/* Registers a filter of a module of this version (which may be NULL), both borrowed permanently.  Why it is
 * not valid; NULL: it is, and was added. */
MUST_USE const char *module_filter_add(const struct stampd_filter *filter, const char *version);

#endif
