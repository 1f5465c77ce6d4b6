/* message: what a command reports to the person who runs it, on standard error. */
#ifndef STAMPD_CONTROL_MESSAGE_H
#define STAMPD_CONTROL_MESSAGE_H

#include "base/arena.h"
#include "base/base.h"
#include "base/bytes.h"

/* Prints one line "stampctl: …". */
void message_print(const char *format, ...) PRINTF_LIKE(1, 2);

/* The text as a JSON string in the arena, in which no control character reaches a terminal: C0, DEL and C1
 * are escaped. */
const char *message_quote(struct arena *arena, struct bytes text);

#endif
