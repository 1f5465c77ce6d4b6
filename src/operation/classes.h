/* classes: the items that documents may have: as an application declares their class, which is registered
 * before fork, else as the schema of the namespace does.  Documents of other classes are free. */
#ifndef STAMPD_OPERATION_CLASSES_H
#define STAMPD_OPERATION_CLASSES_H

#include "base/bytes.h"
#include "operation/attempt.h"

struct item_class {
    struct bytes name;
    bool is_singleton, is_raw;
    const struct schema_copies *copies; /* NULL: not copied */
};

/* Names and items are borrowed permanently; false when the class is declared already. */
MUST_USE bool classes_add(struct bytes document_class, const struct item_class *items, size_t count,
                          const char *schema);
/* Class number `place`, and the schema that its application declares (NULL: none); false past the last. */
bool classes_get(size_t place, struct bytes *document_class_r, const char **schema_r);
/* Why documents of the class cannot have copies of the item, in one sentence; NULL: they can. */
const char *classes_refuse_copy(struct bytes document_class, const struct item_class *item);
/* Does an application declare it? */
bool classes_is_declared(struct bytes document_class);
/* Why such an item cannot be in such a document, in one sentence; NULL: it can. */
const char *classes_refusal(struct bytes document_class, struct bytes item_class, bool is_singleton,
                            bool is_raw);
/* The same, including the schema of the attempt's namespace. */
MUST_USE enum fault classes_judge(struct attempt *attempt, struct bytes document_class,
                                  struct bytes item_class, bool is_singleton, bool is_raw,
                                  const char **refusal_r);
/* Call before refusing with `refusal` because of the schema: FAULT_STALE when it has changed meanwhile. */
MUST_USE enum fault classes_confirm(struct attempt *attempt, enum fault refusal);
/* The schema of the attempt's namespace; constant during a try. */
MUST_USE enum fault classes_schema(struct attempt *attempt, const struct schema **schema_r);

#endif
