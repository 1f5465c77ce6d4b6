/* schema_contents: lists stored contents that do not conform to the JSON Schema of their class: those written
 * before it was declared, and by SQL (validation.md). */
#ifndef STAMPD_CONTROL_SCHEMA_SCHEMA_CONTENTS_H
#define STAMPD_CONTROL_SCHEMA_SCHEMA_CONTENTS_H

#include "control/control.h"
#include "edge/pg/pg.h"
#include "model/schema/schema.h"

/* Checks all contents of the namespace, in batches; prints a line for each that does not conform, or an
 * object of JSON.  False: a failure, which is reported. */
MUST_USE bool schema_contents_check(struct control *control, struct pg *pg, const struct schema *schema,
                                    bool is_json, int64_t *checked_r, int64_t *wrong_r);

#endif
