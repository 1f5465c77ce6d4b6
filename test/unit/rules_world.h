/* rules_world: documents, changes and questions for tests of rules. */
#ifndef STAMPD_TEST_RULES_WORLD_H
#define STAMPD_TEST_RULES_WORLD_H

#include "model/rules/rules.h"

extern struct arena *rules_world_arena;
extern int rules_world_loads; /* of teams */

int rules_world_set_up(void **state);
int rules_world_tear_down(void **state);

/* A document of items "Info={...}", "Member/ann={...}", "Raw:text", "Gone-" (a tombstone), one to a line.
 * NULL: a document that does not exist. */
struct document *rules_world_make(const char *class, const char *id, const char *text);

#define NOTHING "nothing" /* the document ends */
#define AGAIN   "again"   /* it ends, and another one is created, of the items that follow */
/* Items that are set or, tombstones, removed; NOTHING; AGAIN and items. */
struct draft *rules_world_change(struct document *base, const char *after);

/* `caller`: "ann editor,admin"; "": not signed in.  Teams: "red", of ann with the role chief and of bob;
 * "broken" cannot be loaded. */
struct rules_question rules_world_ask(const char *rules, const char *caller);

/* What is decided of the document Note/1, and by which rule; with "!" before it: that refuses. */
void rules_world_read(const char *rules, const char *caller, const char *items, const char *rule);
void rules_world_list(const char *rules, const char *caller, const char *items, const char *rule);
void rules_world_alter(const char *rules, const char *caller, const char *before, const char *after,
                       const char *rule);
void rules_world_check(bool may, const struct rules_question *question, const char *rule, const char *what,
                       bool is_expected);

#endif
