/* key: the administrator's key in its file. */
#ifndef STAMPD_CONTROL_KEY_H
#define STAMPD_CONTROL_KEY_H

#include "base/bytes.h"
#include "control/control.h"

/* Reads the key, without the blanks behind it; on failure says why. */
MUST_USE bool key_read(struct control *control, const char *path, struct bytes *key_r);

#endif
