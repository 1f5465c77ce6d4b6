/* schema_claims: reserves the values of existing documents when properties are declared unique in all
 * namespaces, as commits of workers reserve them (store/documents/reservations.h). */
#ifndef STAMPD_CONTROL_SCHEMA_SCHEMA_CLAIMS_H
#define STAMPD_CONTROL_SCHEMA_SCHEMA_CLAIMS_H

#include "control/schema/schema_refusal.h"

struct schema_claims;

/* `pg` fills the namespace whose database it is connected to.  On failure reports why. */
MUST_USE bool schema_claims_open(struct control *control, struct pg *pg, struct schema_claims **reserving_r);
/* After FAULT_AUNIQUE: what was refused. */
const struct schema_refusal *schema_claims_refusal(const struct schema_claims *reserving);
/* Runs the prepared statement in a transaction that reserves the values it takes.  FAULT_STALE: run it again
 * with the same parameters.  Other faults: `problem_r` is the message. */
MUST_USE enum fault schema_claims_run(struct schema_claims *reserving, const struct pg_statement *statement,
                                      const struct pg_params *params, struct pg_result **row_r,
                                      const char **problem_r);

#endif
