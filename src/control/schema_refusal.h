/* schema_refusal: a unique property that documents do not allow.  It is named with its value and the
 * documents, and taken back, so that nothing of it is left: the class is as it was, and all else of the plan
 * goes on. */
#ifndef STAMPD_CONTROL_SCHEMA_REFUSAL_H
#define STAMPD_CONTROL_SCHEMA_REFUSAL_H

#include "control/schema_plan.h"

/* A value that documents have, or want, twice. */
struct schema_refusal {
    struct bytes property, class, id, value, other; /* other: the document, or NO_BYTES */
};

/* Out of the detail of ST005; false: it is none. */
MUST_USE bool schema_read_refusal(struct arena *arena, const char *detail, struct schema_refusal *refusal_r);
/* Says why the property is not applied, and takes it back; `applied`: what was applied before, whose
 * properties that are unique in all namespaces stay (their values are to be taken again after a restore).
 * False: it could not be taken back, or stays. */
MUST_USE bool schema_take_back(struct control *control, struct pg *pg, const struct schema *applied,
                               const struct schema_refusal *refusal);

#endif
