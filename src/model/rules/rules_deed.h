/* rules_deed: one decision of the rules about a document, by the word for what is to be done with it: for
 * those who explain and test rules. */
#ifndef STAMPD_MODEL_RULES_RULES_DEED_H
#define STAMPD_MODEL_RULES_RULES_DEED_H

#include "model/rules/rules.h"

enum rules_deed {
    RULES_DEED_READ,
    RULES_DEED_LIST,
    RULES_DEED_CREATE,
    RULES_DEED_UPDATE,
    RULES_DEED_DELETE,
    RULES_DEED_SEE,
    RULES_DEED_WRITE
};
/* False: it is none of read, list, create, update, delete, see, write. */
MUST_USE bool rules_deed_find(struct bytes word, enum rules_deed *deed_r);
const char *rules_deed_word(enum rules_deed deed);

/* May the caller do it?  `draft`: the document, as it is to become; an update without a change: may the
 * caller update at all?  `item_class`: of see and write.  Sets `view_r` for read and list. */
bool rules_deed_may(struct rules_question *question, enum rules_deed deed, const struct draft *draft,
                    struct bytes item_class, struct rules_view *view_r);

#endif
