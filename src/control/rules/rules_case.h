/* rules_case: one case of a table of access rules: who may do what, and what is expected. */
#ifndef STAMPD_CONTROL_RULES_RULES_CASE_H
#define STAMPD_CONTROL_RULES_RULES_CASE_H

#include "control/rules/rules_documents.h"
#include "model/rules.h"

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
MUST_USE bool rules_case_find_deed(struct bytes word, enum rules_deed *deed_r);
const char *rules_case_deed_word(enum rules_deed deed);

struct rules_case {
    const char *where; /* "FILE: cases[3]" */
    struct bytes name; /* NO_BYTES: none */
    struct rules_caller caller;
    enum rules_deed deed;
    const struct document *before; /* one that does not exist: it is created */
    const struct document *after;  /* NULL: not given */
    struct bytes item;             /* class of items, of see and write */
    bool expected;
};
/* {"name","caller":{"account","roles"},"may","document","after","item","expected"}: documents are objects, or
 * names ("Note/1") of those in `documents`.  On failure reports why. */
MUST_USE bool rules_case_read(struct rules_documents *documents, const char *where, const struct json *value,
                              struct rules_case *case_r);
/* Sorts the roles. */
void rules_case_set_roles(struct arena *arena, struct rules_caller *caller, const struct bytes *roles,
                          size_t count);

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
