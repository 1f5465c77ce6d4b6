/* record_hosts: commands for records of a namespace that is spread over hosts (records/records_road.h): the
 * stamp-journal of this host asks them.  The caller has been judged. */
#ifndef STAMPD_OPERATION_RECORDS_RECORD_HOSTS_H
#define STAMPD_OPERATION_RECORDS_RECORD_HOSTS_H

#include "operation/attempt.h"
#include "records/records.h"

/* As records_run.  All commands of the request wait as long as record_hosts_ms together.  UNKNOWN: the change
 * may have happened, or happen yet. */
enum records_outcome record_hosts_run(struct attempt *attempt, const struct records_command *command,
                                      struct records_found *found_r);

#endif
