/* record_right: what the caller may do with which records. */
#ifndef STAMPD_OPERATION_RECORDS_RECORD_RIGHT_H
#define STAMPD_OPERATION_RECORDS_RECORD_RIGHT_H

#include "model/record_rules.h"
#include "operation/records/record.h"
#include "operation/reader.h"

bool record_right_allows(const struct call *call, const struct record_rules *rules, struct bytes key,
                         bool is_write);
/* Holds the command, which the caller may run, to the terms of the rules that allow it: its end, and whom the
 * record counts for.  Without effect for the administrator.  FAULT_ALIMIT, recorded in the reply: it is to
 * last longer than a rule allows. */
MUST_USE enum fault record_right_hold(const struct reader *reader, const struct record_rules *rules,
                                      struct record_request *request);
/* The same of the command for one key of many, or of a module; its times are cut. */
void record_right_hold_one(const struct reader *reader, const struct record_rules *rules, struct bytes key,
                           struct records_command *command);
/* Could there be a key that the caller may read? */
bool record_right_allows_some(const struct call *call, const struct record_rules *rules);
/* FAULT_SCLOSED at the command, recorded in the reply. */
enum fault record_right_refuse(const struct reader *reader, const struct json *command);
/* FAULT_ORECORDS, recorded in the reply: several hosts hold the records of the namespace, and the memory of
 * this one, in which the caller looks for changes or for many keys, has none. */
MUST_USE enum fault record_right_refuse_spread(const struct reader *reader, const struct ns_conf *conf);

#endif
