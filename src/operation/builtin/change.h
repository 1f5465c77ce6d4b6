/* change: what the operations that write do to a draft, held to the limits. */
#ifndef STAMPD_OPERATION_BUILTIN_CHANGE_H
#define STAMPD_OPERATION_BUILTIN_CHANGE_H

#include "operation/reader.h"
#include "operation/registry.h"

/* Sets, and with `may_remove` removes, what the elements say: {"c","k","j"|"s"} or {"c","k","del":true}; then
 * looks at what the document costs.  `items` NULL: none. */
MUST_USE enum fault change_items(struct attempt *attempt, struct draft *draft, const struct json *items,
                                 bool may_remove);

/* The version that callers know: 0 of a document that does not exist. */
int64_t change_version(const struct document *document);
/* FAULT_AVERSION with class, id and that version. */
enum fault change_refuse_version(const struct reader *reader, const struct document *document);

#endif
