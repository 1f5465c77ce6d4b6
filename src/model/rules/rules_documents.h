/* rules_documents: documents as they are given to those who test and explain rules, to be judged.  Pure: no
 * I/O. */
#ifndef STAMPD_MODEL_RULES_RULES_DOCUMENTS_H
#define STAMPD_MODEL_RULES_RULES_DOCUMENTS_H

#include "base/arena.h"
#include "base/builder.h"
#include "edge/json/json.h"
#include "model/document/draft.h"

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

#endif
