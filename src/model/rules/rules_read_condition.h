/* rules_read_condition: reads conditions of grants. */
#ifndef STAMPD_MODEL_RULES_RULES_READ_CONDITION_H
#define STAMPD_MODEL_RULES_RULES_READ_CONDITION_H

#include "model/rules/rules_reader.h"

/* False: refused. */
bool rules_read_condition(struct rules_reader *reader, struct rules_node node,
                          const struct rules_condition **condition_r);

#endif
