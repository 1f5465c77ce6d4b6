/* rules_outline: what rules allow a caller with some, or with all, documents of a class, as far as this can
 * be said without a document.  Pure. */
#ifndef STAMPD_MODEL_RULES_RULES_OUTLINE_H
#define STAMPD_MODEL_RULES_RULES_OUTLINE_H

#include "model/rules/rules.h"

enum rules_extent {
    RULES_NEVER,  /* with no document */
    RULES_SOME,   /* depends on the document: its owner, members, team, contents */
    RULES_ALWAYS, /* with every document */
};

enum rules_extent rules_outline_class(const struct rules *rules, const struct rules_caller *caller,
                                      struct bytes class, enum rules_right right);
/* Of items of this class in documents that the caller may read, or change. */
enum rules_extent rules_outline_see(const struct rules *rules, const struct rules_caller *caller,
                                    struct bytes class, struct bytes item_class);
enum rules_extent rules_outline_write(const struct rules *rules, const struct rules_caller *caller,
                                      struct bytes class, struct bytes item_class);

#endif
