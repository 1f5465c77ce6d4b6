/* rules_left: what becomes of documents when accounts have been deleted.
 *
 * A document whose owner was deleted is deleted too, if the rules of its class say `"on_owner_deleted":
 * "delete"`; otherwise it is kept.  Items by which a deleted account was a member, of the document's class or
 * of a team that rules name, are removed.  Pure: no I/O. */
#ifndef STAMPD_MODEL_RULES_RULES_LEFT_H
#define STAMPD_MODEL_RULES_RULES_LEFT_H

#include "model/rules/rules.h"

struct rules_left {
    const struct rules *rules;
    /* Was the account deleted? */
    bool (*is_gone)(void *context, struct bytes account);
    void *context;
};

enum rules_left_act { RULES_LEFT_NOTHING, RULES_LEFT_MEMBERS, RULES_LEFT_DOCUMENT };

/* The next class after this name (empty: the first) whose documents can be concerned, in the order of names;
 * NO_BYTES: there is none. */
struct bytes rules_left_next_class(const struct rules *rules, struct bytes after);
/* Are documents of the class deleted with the account of their owner? */
bool rules_left_ends_class(const struct rules *rules, struct bytes class);
/* What is to be done with the document. */
enum rules_left_act rules_left_find(const struct rules_left *left, struct arena *arena,
                                    const struct document *document);
/* Does it to a draft that has not been changed. */
enum rules_left_act rules_left_apply(const struct rules_left *left, struct arena *arena, struct draft *draft);

#endif
