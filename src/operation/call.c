/* call: what a fault leaves in the reply. */
#include "operation/call.h"

#include <stdarg.h>

enum fault reply_fault(struct call *call, struct reply *reply, enum fault fault, const char *detail, ...)
{
    reply->fault = fault;
    reply->argument_count = 0;
    reply->detail = detail ? arena_copy(call->arena, detail, strlen(detail)) : NULL;
    va_list arguments;
    va_start(arguments, detail);
    const char *argument;
    while ((argument = va_arg(arguments, const char *)) && reply->argument_count < REPLY_ARGUMENTS_MAX)
        reply->arguments[reply->argument_count++] = arena_copy(call->arena, argument, strlen(argument));
    va_end(arguments);
    return fault;
}
