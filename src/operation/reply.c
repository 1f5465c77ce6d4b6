/* call: how a fault is recorded in the reply, and its code, text and class. */
#include "operation/reply.h"

#include <stdarg.h>

#include "base/clock.h"

enum { MIME_MOST = 127 };

void reply_enter(struct reply *reply, enum phase phase)
{
    if (reply->timing) {
        int64_t now_us = clock_monotonic_us();
        reply->timing->us[reply->phase] += now_us - reply->timing->since_us;
        reply->timing->since_us = now_us;
    }
    reply->phase = phase;
}

enum fault reply_fault(struct call *call, struct reply *reply, enum fault fault, const char *detail, ...)
{
    reply->fault = fault;
    reply->code = NULL;
    reply->at = NULL;
    reply->argument_count = 0;
    reply->detail = detail ? arena_copy(call->arena, detail, strlen(detail)) : NULL;
    va_list arguments;
    va_start(arguments, detail);
    const char *argument;
    while ((argument = va_arg(arguments, const char *)))
        reply_add_argument(call, reply, argument);
    va_end(arguments);
    return fault;
}

enum fault reply_wrong_argument(struct call *call, struct reply *reply, const char *argument,
                                const char *expected)
{
    enum fault fault = reply_fault(call, reply, FAULT_AARG, expected, argument, NULL);
    reply->at = arena_printf(call->arena, "/%s", argument);
    return fault;
}

bool reply_is_mime(struct bytes mime)
{
    for (size_t i = 0; i < mime.size; i++)
        if (mime.data[i] < ' ' || mime.data[i] > '~')
            return false;
    return mime.size && mime.size <= MIME_MOST && memchr(mime.data, '/', mime.size);
}

void reply_add_argument(struct call *call, struct reply *reply, const char *argument)
{
    if (reply->argument_count < REPLY_ARGUMENTS_MAX)
        reply->arguments[reply->argument_count++] = arena_copy(call->arena, argument, strlen(argument));
}

enum fault reply_raise(struct call *call, struct reply *reply, const char *code, const char *detail)
{
    reply_fault(call, reply, FAULT_RAISED, detail, NULL);
    reply->code = arena_copy(call->arena, code, strlen(code));
    return FAULT_RAISED;
}

const char *reply_code(const struct reply *reply)
{
    return reply->fault == FAULT_RAISED ? reply->code : fault_code(reply->fault);
}

/* The application's own sentence is the detail; these describe the kind of fault. */
const char *reply_words(const struct reply *reply)
{
    if (reply->fault != FAULT_RAISED)
        return fault_words(reply->fault);
    switch (reply->code[0]) {
    case 'A':
        return "The application refused the request.";
    case 'N':
        return "The application did not find what was requested.";
    case 'B':
        return "Internal error in the application.";
    case 'D':
        return "The client does not fit the application.";
    case 'C':
        return "Contention in the application.";
    case 'O':
        return "The application is closed.";
    case 'S':
        return "The application does not allow this.";
    default:
        return "Unexpected error in the application.";
    }
}

int reply_major(const struct reply *reply)
{
    return fault_major_of_code(reply_code(reply));
}

bool reply_is_retried(const struct reply *reply, enum fault fault)
{
    return fault == FAULT_RAISED ? strchr("BXC", reply->code[0]) != NULL : fault_is_retried(fault);
}
