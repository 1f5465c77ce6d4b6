/* message: a line of at most 2,047 bytes. */
#include "control/message.h"

#include <stdarg.h>
#include <stdio.h>

void message_print(const char *format, ...)
{
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "stampctl: %s\n", line);
}
