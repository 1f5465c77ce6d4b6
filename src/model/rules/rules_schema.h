/* rules_schema: access rules compared with the schema of their namespace: what rules name that the schema
 * declares otherwise, so that a grant could never apply.  Each may come before the other, so these are
 * warnings and refuse nothing. */
#ifndef STAMPD_MODEL_RULES_RULES_SCHEMA_H
#define STAMPD_MODEL_RULES_RULES_SCHEMA_H

#include "model/rules/rules.h"
#include "model/schema/schema.h"

/* Receives one sentence, with the place in the rules: "Note.owner: …". */
typedef void rules_schema_report(void *context, const char *sentence);

/* How many sentences there were.  Classes of documents that the schema does not declare are reported once
 * each; in a class that is open, items that are not declared are not. */
size_t rules_schema_compare(struct arena *arena, const struct rules *rules, const struct schema *schema,
                            rules_schema_report *report, void *context);

#endif
