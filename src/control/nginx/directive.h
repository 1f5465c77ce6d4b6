/* directive: single directives in the text of nginx's configuration. */
#ifndef STAMPD_CONTROL_NGINX_DIRECTIVE_H
#define STAMPD_CONTROL_NGINX_DIRECTIVE_H

#include "base/bytes.h"

/* Finds the next directive `name` at or after *position, and gives the text between its name and its
 * semicolon.  Skips comments and quoted texts.  Moves *position past the directive.  False: there is none. */
bool directive_next(struct bytes text, const char *name, size_t *position, struct bytes *value_r);
/* "16m", "512k", "1g", "16777216" in bytes; "60s", "1m", "60" in seconds.  False: it has another form. */
MUST_USE bool directive_bytes(struct bytes value, int64_t *bytes_r);
MUST_USE bool directive_seconds(struct bytes value, int64_t *seconds_r);

#endif
