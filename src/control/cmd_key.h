/* cmd_key: `stampctl key`; the administrator's key in its file, and how a key is written to one. */
#ifndef STAMPD_CONTROL_CMD_KEY_H
#define STAMPD_CONTROL_CMD_KEY_H

#include "base/bytes.h"
#include "control/control.h"

/* Reads the key without its trailing blanks; on failure reports why. */
MUST_USE bool cmd_key_read(struct control *control, const char *path, struct bytes *key_r);
/* Writes a new file that only its owner can read; never replaces a file.  On failure reports why. */
MUST_USE bool cmd_key_write(const char *path, struct bytes text);

/* Writes a random key to such a file, as hexadecimal digits. */
enum { CMD_KEY_DIGITS = 64 };
MUST_USE bool cmd_key_make(const char *path, char key_r[CMD_KEY_DIGITS + 1]);

/* `key records`: cmd_key_records.c. */
int cmd_key_records(struct control *control, int argc, char **argv);

#endif
