/* cmd_key: the administrator's key in its file, and how a key gets into one. */
#ifndef STAMPD_CONTROL_CMD_KEY_H
#define STAMPD_CONTROL_CMD_KEY_H

#include "base/bytes.h"
#include "control/control.h"

/* Reads the key, without the blanks behind it; on failure says why. */
MUST_USE bool key_read(struct control *control, const char *path, struct bytes *key_r);
/* Writes a new file that only its owner can read; one that is there stays as it is.  On failure says why. */
MUST_USE bool key_write(const char *path, struct bytes text);

#endif
