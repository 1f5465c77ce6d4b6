/* classes: what items documents may have: as an application declares their class, which is filled before
 * fork, else as the schema of the namespace does.  Documents of other classes are free. */
#ifndef STAMPD_OPERATION_CLASSES_H
#define STAMPD_OPERATION_CLASSES_H

#include "base/bytes.h"
#include "operation/registry.h"

struct item_class {
    struct bytes name;
    bool is_singleton, is_raw;
    const struct schema_copies *copies; /* NULL: it is not copied */
};

/* Names and items are borrowed for good; false when the class is declared already. */
MUST_USE bool classes_add(struct bytes document_class, const struct item_class *items, size_t count,
                          const char *schema);
/* The class number `place`, and what its application says of it as a schema (NULL: nothing); false from the
 * end on. */
bool classes_get(size_t place, struct bytes *document_class_r, const char **schema_r);
/* Why documents of the class cannot have copies of such an item, in one sentence; NULL: they can. */
const char *classes_refuse_copy(struct bytes document_class, const struct item_class *item);
/* Does an application declare it? */
bool classes_is_declared(struct bytes document_class);
/* Why an item like that cannot be in a document like that, in one sentence; NULL: it can. */
const char *classes_refusal(struct bytes document_class, struct bytes item_class, bool is_singleton,
                            bool is_raw);
/* The same, by the schema of the attempt's namespace too. */
MUST_USE enum fault classes_judge(struct attempt *attempt, struct bytes document_class,
                                  struct bytes item_class, bool is_singleton, bool is_raw,
                                  const char **refusal_r);
/* Before the schema is a reason to refuse with `refusal`: FAULT_STALE when it has moved meanwhile. */
MUST_USE enum fault classes_confirm(struct attempt *attempt, enum fault refusal);
/* The schema of the attempt's namespace: the same for the whole try. */
MUST_USE enum fault classes_schema(struct attempt *attempt, const struct schema **schema_r);

#endif
