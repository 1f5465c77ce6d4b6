/* schema_refusal: a unique property that existing documents violate.  It is reported with its value and the
 * documents, and withdrawn completely: the class is as before, and the rest of the plan continues. */
#ifndef STAMPD_CONTROL_SCHEMA_SCHEMA_REFUSAL_H
#define STAMPD_CONTROL_SCHEMA_SCHEMA_REFUSAL_H

#include "control/schema/schema_plan.h"

/* A value that two documents have, or want. */
struct schema_refusal {
    struct bytes property, class, id, value, other; /* other: the document, or NO_BYTES */
};

/* Parses the detail of ST005; false: it is not one. */
MUST_USE bool schema_refusal_read(struct arena *arena, const char *detail, struct schema_refusal *refusal_r);
/* Reports why the property is not applied, and withdraws it.  `applied` is the schema applied before: its
 * properties that are unique in all namespaces stay (their values must be reserved again after a restore).
 * False: it could not be withdrawn, or stays. */
MUST_USE bool schema_refusal_take_back(struct control *control, struct pg *pg, const struct schema *applied,
                                       const struct schema_refusal *refusal);

#endif
