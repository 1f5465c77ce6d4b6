/* cmd_rules: the subcommands of `stampctl rules`, and what `stampctl schema` shares with them. */
#ifndef STAMPD_CONTROL_RULES_CMD_RULES_H
#define STAMPD_CONTROL_RULES_CMD_RULES_H

#include "control/control.h"
#include "model/rules/rules.h"
#include "model/schema/schema.h"

int cmd_rules_test(struct control *control, int argc, char **argv);
int cmd_rules_explain(struct control *control, int argc, char **argv);

/* Reads rules from a text; on failure reports why, as those of `where`. */
MUST_USE bool cmd_rules_read(struct arena *arena, const char *where, struct bytes text,
                             struct rules **rules_r);
/* The text of a namespace's rules from the database of z; NO_BYTES: there are none.  On failure reports
 * why. */
MUST_USE bool cmd_rules_fetch(struct control *control, struct pg *z, const char *code, struct bytes *text_r);

/* Prints what the rules, those of `where`, name and the schema declares otherwise; how much there is. */
size_t cmd_rules_compare(struct arena *arena, const char *where, const struct rules *rules,
                         const struct schema *schema);

#endif
