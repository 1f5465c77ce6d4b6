/* nginx_refusals: what nginx refuses by itself, in the form of a worker's answer: error pages, and the
 * locations that serve them. */
#ifndef STAMPD_CONTROL_NGINX_NGINX_REFUSALS_H
#define STAMPD_CONTROL_NGINX_NGINX_REFUSALS_H

#include "base/arena.h"
#include "base/builder.h"
#include "base/settings.h"
#include "control/nginx/site.h"

/* An object store does not answer. */
enum { NGINX_REFUSALS_STORE = 0 };

/* `return` with the fault of a status, or of NGINX_REFUSALS_STORE, without a line end. */
const char *nginx_refusals_return(struct arena *arena, int status);

const char *nginx_refusals(struct arena *arena, const struct settings *settings, const struct site *site);

#endif
