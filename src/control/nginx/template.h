/* template: texts with @NAMES@ to be replaced. */
#ifndef STAMPD_CONTROL_NGINX_TEMPLATE_H
#define STAMPD_CONTROL_NGINX_TEMPLATE_H

#include "base/builder.h"

struct template_value {
    const char *name; /* "BODY_BYTES", of A-Z and _ */
    const char *value;
};

/* Appends the text with each @NAME@ replaced by its value.  False when a name is unknown: its line, from 1,
 * goes to `line_r` and the name to `name_r`, a slice of the text.  A @ that begins no name stays. */
MUST_USE bool template_fill(struct bytes text, const struct template_value *values, size_t count,
                            struct builder *builder, int *line_r, struct bytes *name_r);

#endif
