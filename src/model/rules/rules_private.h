/* rules_private: rules as they are kept, and a decision under way, for the files of rules alone. */
#ifndef STAMPD_MODEL_RULES_RULES_PRIVATE_H
#define STAMPD_MODEL_RULES_RULES_PRIVATE_H

#include "edge/json/json.h"
#include "model/content/content_value.h"
#include "model/rules/rules.h"

enum { RULES_RIGHTS = RULES_DELETE + 1, RULES_ID_MOST = 255 /* bytes of the id of a document */ };

/* A member of the content of a singleton: "Item.member". */
struct rules_place {
    struct bytes item, member; /* item NO_BYTES: none is declared */
};

/* --- conditions --- */

enum rules_source {
    RULES_OF_LITERAL,
    RULES_OF_BEFORE,
    RULES_OF_AFTER,
    RULES_OF_ACCOUNT, /* of the caller */
    RULES_OF_ROLES,   /* of the caller; only as the list of `in` */
    RULES_OF_LIST     /* only as the list of `in` */
};

struct rules_operand {
    enum rules_source source;
    const struct json *literal;
    struct rules_place place;
    const struct rules_operand *elements;
    size_t count;
};

enum rules_test {
    RULES_IF_ALL,
    RULES_IF_ANY,
    RULES_IF_NOT,
    RULES_IF_EQ,
    RULES_IF_NE,
    RULES_IF_LT,
    RULES_IF_LE,
    RULES_IF_GT,
    RULES_IF_GE,
    RULES_IF_IN,
    RULES_IF_EXISTS,
    RULES_IF_UNCHANGED
};

struct rules_condition {
    enum rules_test test;
    const struct rules_condition *parts; /* of all, any, not */
    size_t part_count;
    struct rules_operand operands[2]; /* of the others; that of unchanged is a place */
};

/* --- grants --- */

/* In the order of what it costs to decide them, in which a list is sorted. */
enum rules_grantee {
    RULES_TO_ANYBODY,
    RULES_TO_ACCOUNT,
    RULES_TO_ROLE,
    RULES_TO_OWNER,
    RULES_TO_MEMBERS,
    RULES_TO_TEAM
};

struct rules_grant {
    enum rules_grantee to;
    struct bytes role;                       /* NO_BYTES: any */
    const struct rules_condition *condition; /* NULL: always */
    const char *path;
};

struct rules_list {
    const char *path;
    const struct rules_grant *grants;
    size_t count;
    bool is_declared;
};

/* A class of items with rules of its own. */
struct rules_item {
    struct bytes name;
    struct rules_list see, write;
};

struct rules_class {
    struct bytes name;
    struct rules_place owner;
    bool ends_with_owner; /* its documents are deleted after their owner's account (rules_sight.h) */
    struct bytes members; /* NO_BYTES: none is declared */
    struct {
        struct bytes class; /* NO_BYTES: none is declared */
        struct rules_place id;
        struct bytes members;
    } team;
    struct rules_list lists[RULES_RIGHTS];
    const struct rules_item *items; /* sorted by name */
    size_t item_count;
};

struct rules {
    const struct rules_class *classes; /* sorted by name */
    size_t class_count;
    struct bytes owners;
};

const struct rules_class *rules_find_class(const struct rules *rules, struct bytes name);
const struct rules_item *rules_find_item(const struct rules_class *class, struct bytes name);

/* --- deciding --- */

/* What is known of the caller's relation to one state of the document: each is found out once. */
struct rules_facts {
    const struct document *document; /* NULL: the draft's */
    const struct draft *draft;
    bool exists;
    bool knows_owner, is_owner;
    bool knows_member, knows_team;
    const struct item *member, *team_member; /* the caller's; NULL: none */
};

struct rules_decision {
    struct rules_question *question;
    const struct rules_class *class;
    struct rules_facts before, after;
    struct rules_facts *subject;  /* the state that owner, members and team are looked up in */
    struct content_budget budget; /* of all comparisons */
    bool is_broken;               /* nothing can be granted any more: a fault, or the budget is spent */
};

/* The live item of that name; NULL: none. */
const struct item *rules_item_of(const struct rules_facts *facts, struct bytes item_class, struct bytes key);
/* The member of a JSON content; false: there is none. */
bool rules_member_of(struct rules_decision *decision, const struct item *item, struct bytes member,
                     struct json *value_r);
/* False also once the decision is broken. */
bool rules_condition_holds(struct rules_decision *decision, const struct rules_condition *condition);

bool rules_caller_has_role(const struct rules_caller *caller, struct bytes role);

#endif
