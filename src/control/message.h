/* message: what a command reports to the person who runs it, on standard error. */
#ifndef STAMPD_CONTROL_MESSAGE_H
#define STAMPD_CONTROL_MESSAGE_H

#include "base/base.h"

/* Prints one line "stampctl: …". */
void message_print(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
