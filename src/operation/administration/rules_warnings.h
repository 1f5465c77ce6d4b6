/* rules_warnings: appends to the answer of a change what the administrator should know of it, such as what
 * the access rules and the schema of a namespace declare differently (model/rules/rules_schema.h); for the
 * operations `ns` and `schema`. */
#ifndef STAMPD_OPERATION_ADMINISTRATION_RULES_WARNINGS_H
#define STAMPD_OPERATION_ADMINISTRATION_RULES_WARNINGS_H

#include "model/rules/rules_schema.h"
#include "operation/attempt.h"

/* Appends a sentence to the list, a struct builder, which begins empty. */
void rules_warnings_add(void *list, const char *sentence);
/* Appends a sentence for each difference. */
void rules_warnings_compare(struct attempt *attempt, const struct rules *rules, const struct schema *schema,
                            struct builder *list);
/* The member `warnings` of the answer that change_leave_version has made; absent when there are none.  Frees
 * the list. */
void rules_warnings_write(struct attempt *attempt, struct builder *list);

#endif
