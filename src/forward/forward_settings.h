/* forward_settings: the settings of stamp-forward, a file of lines `name = value` (base/pairs.h); the last
 * line of a name counts. */
#ifndef STAMPD_FORWARD_FORWARD_SETTINGS_H
#define STAMPD_FORWARD_FORWARD_SETTINGS_H

#include "base/base.h"

struct forward_settings {
#define TEXT(name, value, description)                      char *name;
#define NUMBER(name, value, least, most, unit, description) int64_t name;
#include "forward/forward_settings_table.h"
#undef TEXT
#undef NUMBER
};

/* On failure writes one line to `problem` with the file, the number of the line and the error. */
MUST_USE bool forward_settings_load(struct forward_settings *settings, const char *path, char *problem,
                                    size_t problem_size);
void forward_settings_free(struct forward_settings *settings);

#endif
