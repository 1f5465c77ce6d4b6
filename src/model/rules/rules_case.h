/* rules_case: one case of a table of access rules: a caller, what the caller would do, and the expected
 * decision. */
#ifndef STAMPD_MODEL_RULES_RULES_CASE_H
#define STAMPD_MODEL_RULES_RULES_CASE_H

#include "base/builder.h"
#include "edge/json/json.h"
#include "model/document/draft.h"
#include "model/rules/rules.h"

/* --- rules deed --- */

/* One decision of the rules about a document, by the word for what is to be done with it: for
 * those who explain and test rules. */

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

/* --- rules documents --- */

/* Documents as they are given to those who test and explain rules, to be judged.  Pure: no
 * I/O. */

enum { RULES_DOCUMENTS_ITEMS_MOST = 100000 };

/* Starts as {.arena = …}; the documents live as long as the arena. */
struct rules_documents {
    struct arena *arena;
    const struct document **list;
    size_t count, capacity;
    /* out: why something was refused, and where: "cases[3].may", as `where` begins */
    const char *place, *problem;
};

/* Records the problem; false. */
bool rules_documents_refuse(struct rules_documents *documents, const char *place, const char *problem);
/* Refuses members that are not in `known`, and a value that is no object.  `where`: "cases[3]". */
MUST_USE bool rules_documents_check_members(struct rules_documents *documents, const char *where,
                                            const struct json *object, const char *known);

/* Builds a document from its items, in any order; refuses a duplicate. */
const struct document *rules_documents_build(struct rules_documents *documents, const char *where,
                                             struct bytes class, struct bytes id, struct item *items,
                                             size_t count);
/* {"c","id","items":[{"c","k","j" | "s"}…]}; NULL: refused. */
const struct document *rules_documents_read(struct rules_documents *documents, const char *where,
                                            const struct json *value);
void rules_documents_add(struct rules_documents *documents, const struct document *document);
/* NULL: it is not among them. */
const struct document *rules_documents_find(const struct rules_documents *documents, struct bytes class,
                                            struct bytes id);
/* A document that does not exist. */
const struct document *rules_documents_none(struct rules_documents *documents, struct bytes class,
                                            struct bytes id);
/* As a question about rules loads documents; the context is the struct.  One that is not among them does not
 * exist. */
enum fault rules_documents_load(void *documents, struct bytes class, struct bytes id,
                                const struct document **document_r);
/* The change of `before` into `after`; NULL: the document ends. */
struct draft *rules_documents_change(struct arena *arena, const struct document *before,
                                     const struct document *after);

/* "Note/1" as class and id; false: it is no such name. */
bool rules_documents_is_name(struct bytes text, struct bytes *class_r, struct bytes *id_r);

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
