/* record_listen: the command `listen` of the operation `record`: which keys have changed since a position;
 * waits for the first one, if the client wants it. */
#ifndef STAMPD_OPERATION_RECORDS_RECORD_LISTEN_H
#define STAMPD_OPERATION_RECORDS_RECORD_LISTEN_H

#include "model/record_rules.h"
#include "operation/attempt.h"
#include "operation/records/record.h"

/* FAULT_SCLOSED, recorded in the reply: the caller may not read a key that the command names, or none at all.
 */
MUST_USE enum fault record_listen_judge(const struct reader *reader, const struct record_request *request,
                                        const struct record_rules *rules);
/* Appends the result, after record_listen_judge, which is repeated after a wait.  What the caller may not
 * read is not there. */
MUST_USE enum fault record_listen_run(struct attempt *attempt, const struct record_request *request,
                                      const struct record_rules *rules);

#endif
