/* template: texts with @NAMES@ to be replaced, and lines for the template itself, which begin with %:
 *
 *     %if NAME      what follows, to its %end, is there unless the value is "" or "0"
 *     %block NAME   what follows, to its %end, is there only where @NAME@ stands
 *     %# …          a comment */
#ifndef STAMPD_CONTROL_NGINX_TEMPLATE_H
#define STAMPD_CONTROL_NGINX_TEMPLATE_H

#include "base/builder.h"

struct template_value {
    const char *name; /* "BODY_BYTES", of A-Z and _ */
    const char *value;
};

/* Appends the text with each @NAME@ replaced by its value, or by the block of this name.  False when a name
 * is unknown: its line, from 1, goes to `line_r` and the name to `name_r`, a slice of the text.  A @ that
 * begins no name stays. */
MUST_USE bool template_fill(struct bytes text, const struct template_value *values, size_t count,
                            struct builder *builder, int *line_r, struct bytes *name_r);
/* The same for one block of the text.  False also when there is no such block: `name_r` is its name then. */
MUST_USE bool template_fill_block(struct bytes text, const char *block, const struct template_value *values,
                                  size_t count, struct builder *builder, int *line_r, struct bytes *name_r);

#endif
