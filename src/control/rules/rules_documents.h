/* rules_documents: documents as `stampctl rules` reads them from a file or a database, to be judged. */
#ifndef STAMPD_CONTROL_RULES_RULES_DOCUMENTS_H
#define STAMPD_CONTROL_RULES_RULES_DOCUMENTS_H

#include "base/arena.h"
#include "base/builder.h"
#include "edge/json.h"
#include "model/draft.h"

enum { RULES_DOCUMENTS_ITEMS_MOST = 100000 };

/* Starts as {.arena = …}; the documents live as long as the arena. */
struct rules_documents {
    struct arena *arena;
    const struct document **list;
    size_t count, capacity;
};

/* Refuses members that are not in `known`, and a value that is no object; reports them.  `where`:
 * "FILE: cases[3]". */
MUST_USE bool rules_documents_check_members(struct arena *arena, const char *where, const struct json *object,
                                            const char *known);

/* Builds a document from its items, in any order; reports a duplicate. */
const struct document *rules_documents_build(struct rules_documents *documents, const char *where,
                                             struct bytes class, struct bytes id, struct item *items,
                                             size_t count);
/* {"c","id","items":[{"c","k","j" | "s"}…]}; NULL: refused, and reported. */
const struct document *rules_documents_read(struct rules_documents *documents, const char *where,
                                            const struct json *value);
void rules_documents_add(struct rules_documents *documents, const struct document *document);
/* NULL: it is not among them. */
const struct document *rules_documents_find(const struct rules_documents *documents, struct bytes class,
                                            struct bytes id);
/* A document that does not exist. */
const struct document *rules_documents_none(struct rules_documents *documents, struct bytes class,
                                            struct bytes id);
/* The change of `before` into `after`; NULL: the document ends. */
struct draft *rules_documents_change(struct arena *arena, const struct document *before,
                                     const struct document *after);

/* "Note/1" as class and id; false: it is no such name. */
bool rules_documents_is_name(struct bytes text, struct bytes *class_r, struct bytes *id_r);

#endif
