/* directive: single directives in the text of nginx's configuration. */
#ifndef STAMPD_CONTROL_DIRECTIVE_H
#define STAMPD_CONTROL_DIRECTIVE_H

#include "base/bytes.h"

/* The next directive `name` at or behind *position: what stands between its name and its semicolon.  Comments
 * and quoted texts are passed over.  *position moves behind it.  False: there is none. */
bool directive_next(struct bytes text, const char *name, size_t *position, struct bytes *value_r);
/* "16m", "512k", "1g", "16777216" in bytes; "60s", "1m", "60" in seconds: false when it is neither. */
MUST_USE bool directive_bytes(struct bytes value, int64_t *bytes_r);
MUST_USE bool directive_seconds(struct bytes value, int64_t *seconds_r);

#endif
