/* schema_claims: documents that are there already take their values of properties that are unique in all
 * namespaces, when these are declared; as commits of workers take them (store/reservations.h). */
#ifndef STAMPD_CONTROL_SCHEMA_CLAIMS_H
#define STAMPD_CONTROL_SCHEMA_CLAIMS_H

#include "control/schema_refusal.h"

struct reserving;

/* `pg` fills the namespace whose database it is connected to.  On failure says why. */
MUST_USE bool reserving_open(struct control *control, struct pg *pg, struct reserving **reserving_r);
/* After FAULT_AUNIQUE: what was refused. */
const struct schema_refusal *reserving_refusal(const struct reserving *reserving);
/* Runs the statement, which is prepared, in a transaction that claims what it takes.  FAULT_STALE: again,
 * with the same parameters.  Other faults: the message is in `problem_r`. */
MUST_USE enum fault reserving_run(struct reserving *reserving, const struct pg_statement *statement,
                                  const struct pg_params *params, struct pg_result **row_r,
                                  const char **problem_r);

#endif
