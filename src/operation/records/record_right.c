/* record_right: the rules for records, for everybody but the administrator. */
#include "operation/records/record_right.h"

#include "operation/access/access.h"

bool record_right_allows(const struct call *call, const struct record_rules *rules, struct bytes key,
                         bool is_write)
{
    return access_is_administrator(call) || record_rules_allow(rules, &call->caller, key, is_write);
}

bool record_right_allows_some(const struct call *call, const struct record_rules *rules)
{
    return access_is_administrator(call) ||
           record_rules_seek(call->arena, rules, &call->caller, BYTES("")).data;
}

enum fault record_right_refuse(const struct reader *reader, const struct json *command)
{
    enum fault fault = reply_fault(reader->call, reader->reply, FAULT_SCLOSED,
                                   "No rule for records of the namespace allows it.", "record", NULL);
    reader_place(reader, command, NULL);
    return fault;
}
