/* schema_wait: waits for transactions that may still use the schema of before. */
#ifndef STAMPD_CONTROL_SCHEMA_SCHEMA_WAIT_H
#define STAMPD_CONTROL_SCHEMA_SCHEMA_WAIT_H

#include "control/control.h"

/* Waits until all transactions that now run in this database and began before have ended; on failure reports
 * why. */
MUST_USE bool schema_wait_for_older(struct control *control, struct pg *pg);

#endif
