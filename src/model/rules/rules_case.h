/* rules_case: one case of a table of access rules: a caller, what the caller would do, and the expected
 * decision. */
#ifndef STAMPD_MODEL_RULES_RULES_CASE_H
#define STAMPD_MODEL_RULES_RULES_CASE_H

#include "model/rules/rules_deed.h"
#include "model/rules/rules_documents.h"

struct rules_case {
    const char *where; /* "cases[3]" */
    struct bytes name; /* NO_BYTES: none */
    struct rules_caller caller;
    enum rules_deed deed;
    const struct document *before; /* one that does not exist: it is created */
    const struct document *after;  /* NULL: not given */
    struct bytes item;             /* class of items, of see and write */
    bool expected;
};
/* {"name","caller":{"account","roles"},"may","document","after","item","expected"}: documents are objects, or
 * names ("Note/1") of those in `documents`.  False: refused. */
MUST_USE bool rules_case_read(struct rules_documents *documents, const char *where, const struct json *value,
                              struct rules_case *case_r);

struct rules_answer {
    bool may;
    enum fault fault; /* of `load` */
    const char *rule; /* as rules_question */
    struct rules_view view;
};
/* An update without `after`: may the caller update at all?  `load` as in rules_question. */
struct rules_answer rules_case_decide(struct arena *arena, const struct rules *rules,
                                      const struct rules_case *one,
                                      enum fault (*load)(void *context, struct bytes class, struct bytes id,
                                                         const struct document **document_r),
                                      void *context);

#endif
