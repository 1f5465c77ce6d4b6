/* message: what a command reports to the person who runs it, on standard error. */
#ifndef STAMPD_CONTROL_MESSAGE_H
#define STAMPD_CONTROL_MESSAGE_H

#include "base/arena.h"
#include "base/base.h"
#include "base/bytes.h"

/* Prints one line "stampctl: …". */
void message_print(const char *format, ...) PRINTF_LIKE(1, 2);
/* The same, as the value with which a function ends: false, or the status of a command. */
#define message_refuse(...)      (message_print(__VA_ARGS__), false)
#define message_end(status, ...) (message_print(__VA_ARGS__), (status))

/* The text as a JSON string in the arena, in which no control character reaches a terminal: C0, DEL and C1
 * are escaped. */
const char *message_quote(struct arena *arena, struct bytes text);

#endif
