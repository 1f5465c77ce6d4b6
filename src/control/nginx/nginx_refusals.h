/* nginx_refusals: what nginx refuses by itself, in the form of a worker's answer: error pages, and the
 * locations that serve them. */
#ifndef STAMPD_CONTROL_NGINX_NGINX_REFUSALS_H
#define STAMPD_CONTROL_NGINX_NGINX_REFUSALS_H

#include "base/arena.h"
#include "base/builder.h"
#include "base/settings.h"
#include "control/nginx/site.h"

/* Of a range outside of a file: `return` with the fault. */
void nginx_refusals_add_range(struct builder *builder);

const char *nginx_refusals(struct arena *arena, const struct settings *settings, const struct site *site);

#endif
