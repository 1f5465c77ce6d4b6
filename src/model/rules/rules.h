/* rules: who may read and change which documents of a namespace.
 *
 * Rules are immutable.  They are read from a JSON text, strictly: the first error is reported with the path
 * of its member and the expected value.  A decision depends on the caller and on documents only, so a cached
 * snapshot is judged in memory.  What no rule allows is refused.  Pure: no I/O. */
#ifndef STAMPD_MODEL_RULES_RULES_H
#define STAMPD_MODEL_RULES_RULES_H

#include "base/arena.h"
#include "base/fault.h"
#include "model/document/document.h"
#include "model/document/draft.h"

struct rules;

enum {
    RULES_TEXT_MOST = 262144, /* bytes */
    RULES_CLASSES_MOST = 256,
    RULES_ITEMS_MOST = 64,            /* classes of items with rules of their own, in a class */
    RULES_GRANTS_MOST = 32,           /* in one list */
    RULES_CONDITION_NODES_MOST = 256, /* parts and operands of a condition */
    RULES_ROLES_MOST = 32             /* of an account */
};

/* Why a text is not a valid set of rules. */
struct rules_problem {
    const char *path;     /* "Note.read[1]"; "" for the whole */
    const char *pointer;  /* the same as a JSON pointer: "/Note/read/1" */
    const char *expected; /* one sentence */
};
/* Everything lives in the arena, texts in `text`.  On error returns FAULT_AARG and the problem. */
MUST_USE enum fault rules_read(struct arena *arena, struct bytes text, struct rules **rules_r,
                               struct rules_problem *problem_r);

size_t rules_count_classes(const struct rules *rules);
/* The classes whose documents have an owner: JSON {class: "Item.member"}, in the order of their names. */
struct bytes rules_owners(const struct rules *rules);

/* The class of the items that make accounts members of documents of this class: as its rules say, or, if they
 * name none, those of another class of which it is the team.  NO_BYTES: there is none. */
struct bytes rules_members(const struct rules *rules, struct bytes class);

/* Classes of documents that belong to the server: no rule can be declared for them, and so only the
 * administrator and the server's own operations reach them. */
bool rules_is_reserved(struct bytes class);
/* Can a rule name this role: a letter or digit, then up to 63 letters, digits and the signs _ - . : and / ?
 */
bool rules_is_role(struct bytes name);

/* The caller, as far as rules depend on it. */
struct rules_caller {
    struct bytes account;      /* NO_BYTES: nobody has signed in */
    const struct bytes *roles; /* sorted */
    size_t role_count;
    int64_t version; /* since when the account has its roles: another one whenever they were set */
};

/* Sets the roles; sorts them in the arena. */
void rules_caller_set_roles(struct arena *arena, struct rules_caller *caller, const struct bytes *roles,
                            size_t count);

/* A decision under way. */
struct rules_question {
    const struct rules *rules;
    const struct rules_caller *caller;
    /* The newest snapshot of a document that a rule names (a team), as it was before the change that is
     * judged. A fault other than FAULT_NONE ends the decision: it is refused, and `fault` is set. */
    enum fault (*load)(void *context, struct bytes class, struct bytes id,
                       const struct document **document_r);
    void *context;
    struct arena *arena; /* for texts of the decision */
    enum fault fault;    /* out */
    const char *rule;    /* out: path of the rule that allowed ("Note.read[1]"), or of the list that did not
                            ("Note.read"); "": the class has no rules, or the document does not exist */
};

enum rules_right { RULES_READ, RULES_LIST, RULES_CREATE, RULES_UPDATE, RULES_DELETE };
const char *rules_right_word(enum rules_right right);

/* What a caller sees of a document: all but the items of some classes. */
struct rules_view {
    const struct rules_class *class; /* NULL: nothing is hidden */
    uint64_t hidden;                 /* bits: places of items in the class's rules */
};
bool rules_view_is_whole(const struct rules_view *view);
bool rules_view_shows(const struct rules_view *view, struct bytes item_class);
/* The hidden classes of items, joined by blanks, in the arena. */
struct bytes rules_view_hidden(const struct rules_view *view, struct arena *arena);
/* The same for the same set of hidden classes of items, in all processes and under all rules; "" when nothing
 * is hidden; up to 16 characters of [0-9a-f]. */
const char *rules_view_name(const struct rules_view *view, struct arena *arena);

/* May the caller read the document, and what of it?  A document that does not exist cannot be read. */
bool rules_may_read(struct rules_question *question, const struct document *document,
                    struct rules_view *view_r);
/* May the caller learn of the document from a list or a search?  Includes rules_may_read. */
bool rules_may_list(struct rules_question *question, const struct document *document,
                    struct rules_view *view_r);
/* May the caller see items of this class in the document?  Includes rules_may_read. */
bool rules_may_see(struct rules_question *question, const struct document *document, struct bytes item_class);

/* May the caller leave the document as the draft does?  Creation is judged by the document after the change,
 * a change and a removal by the document before it, which the caller must also be able to read.  The classes
 * of all items that were set, changed or removed must be writable, except in a document that ends.  An
 * unchanged draft is allowed. */
bool rules_may_change(struct rules_question *question, const struct draft *draft);
/* May the caller set or remove items of this class in the document: create or update it, and write them? */
bool rules_may_write(struct rules_question *question, const struct draft *draft, struct bytes item_class);
/* May an operation of the caller name the items of this class (NO_BYTES: the document alone) in order to set
 * or remove them, also without effect?  A change without effect is allowed by rules_may_change: without this
 * question, whoever sets a hidden item would learn whether its content was guessed.  What the caller sees it
 * may name; else rules_may_write decides.  Of a document that does not exist nothing can be learned, and who
 * may create it can depend on items that are still to be set. */
bool rules_may_name(struct rules_question *question, const struct draft *draft, struct bytes item_class);

#endif
