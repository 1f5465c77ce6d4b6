/* record_right: what the caller may do with which records. */
#ifndef STAMPD_OPERATION_RECORDS_RECORD_RIGHT_H
#define STAMPD_OPERATION_RECORDS_RECORD_RIGHT_H

#include "model/record_rules.h"
#include "operation/reader.h"

bool record_right_allows(const struct call *call, const struct record_rules *rules, struct bytes key,
                         bool is_write);
/* Could there be a key that the caller may read? */
bool record_right_allows_some(const struct call *call, const struct record_rules *rules);
/* FAULT_SCLOSED at the command, recorded in the reply. */
enum fault record_right_refuse(const struct reader *reader, const struct json *command);

#endif
