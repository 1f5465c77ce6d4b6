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

const char *message_quote(struct arena *arena, struct bytes text)
{
    char *quoted = ARENA_ROOM(arena, char, text.size * 6 + 3), *to = quoted;
    *to++ = '"';
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        unsigned char next = i + 1 < text.size ? (unsigned char)text.data[i + 1] : 0;
        bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;
        if (byte < 0x20 || byte == 0x7F || is_c1) {
            to += snprintf(to, sizeof "\\u0000", "\\u%04x", is_c1 ? next : byte);
            i += is_c1;
        } else {
            if (byte == '"' || byte == '\\')
                *to++ = '\\';
            *to++ = (char)byte;
        }
    }
    *to++ = '"';
    *to = '\0';
    return quoted;
}
