/* classes: the classes of documents that applications have declared, and what items they may have.  Filled
 * before fork.  Documents of other classes are free. */
#ifndef STAMPD_OPERATION_CLASSES_H
#define STAMPD_OPERATION_CLASSES_H

#include "base/bytes.h"

struct item_class {
    struct bytes name;
    bool is_singleton, is_raw;
};

/* Names and items are borrowed for good; false when the class is declared already. */
MUST_USE bool classes_add(struct bytes document_class, const struct item_class *items, size_t count);
/* Why an item like that cannot be in a document like that, in one sentence; NULL: it can. */
const char *classes_refusal(struct bytes document_class, struct bytes item_class, bool is_singleton,
                            bool is_raw);

#endif
