/* rules_schema: access rules compared with the schema of their namespace: what rules name that the schema
 * declares otherwise, so that a grant could never apply.  Each may come before the other, so these are
 * warnings and refuse nothing. */
#ifndef STAMPD_MODEL_RULES_RULES_SCHEMA_H
#define STAMPD_MODEL_RULES_RULES_SCHEMA_H

#include "model/rules/rules.h"
#include "model/schema/schema.h"

/* Receives one sentence, with the place in the rules: "Note.owner: …". */
typedef void rules_schema_report(void *context, const char *sentence);

/* How many sentences there were.  Classes of documents that the schema does not declare are reported once
 * each; in a class that is open, items that are not declared are not. */
size_t rules_schema_compare(struct arena *arena, const struct rules *rules, const struct schema *schema,
                            rules_schema_report *report, void *context);

/* --- rules outline --- */

/* What rules allow a caller with some, or with all, documents of a class, as far as this can
 * be said without a document.  Pure. */

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

/* May the caller have any right to documents of the class?  If not, no answer shows anything of the class. */
bool rules_outline_shows(const struct rules *rules, const struct rules_caller *caller, struct bytes class);
/* May an answer show whether the schema declares this in the class: classes of items, a collection of their
 * members; `items` NULL, count 0: the schema does not?  It may where the caller could see them.  That
 * something is not declared is shown only where no class of items is hidden from the caller, which could else
 * distinguish it from what is hidden. */
bool rules_outline_discloses(const struct rules *rules, const struct rules_caller *caller, struct bytes class,
                             const struct bytes *items, size_t count);
/* May an answer show what the schema requires of an item that the caller writes?  It may where the caller
 * could create or change a document with such an item. */
bool rules_outline_discloses_writer(const struct rules *rules, const struct rules_caller *caller,
                                    struct bytes class, struct bytes item_class);

/* May the caller read and list every document of the class, with all its items? */
bool rules_outline_whole(const struct rules *rules, const struct rules_caller *caller, struct bytes class);

#endif
