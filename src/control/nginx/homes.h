/* homes: nginx's list of the workers that keep the database sessions of each namespace (serve/home.h). */
#ifndef STAMPD_CONTROL_NGINX_HOMES_H
#define STAMPD_CONTROL_NGINX_HOMES_H

#include "base/bytes.h"
#include "base/settings.h"
#include "control/ns/ns_registry.h"

/* How many workers are the home of each of `count` namespaces, so that each worker has room for the sessions
 * of its namespaces; all workers when there are few namespaces. */
int64_t homes_width(const struct settings *settings, size_t count);

/* Of so many workers, the first that takes requests with large bodies: those from it on do, half of them, and
 * at least one.  0: all do. */
int64_t homes_large(int64_t workers);

/* The text of the list: maps and upstreams that nginx's configuration includes.  Leaves out the code `but`
 * (NULL: leaves out none). */
struct bytes homes_compose(struct arena *arena, const struct settings *settings,
                           const struct namespace_conf *confs, size_t count, const char *but);
/* "\\" before a code that nginx would read as a parameter of a map, else "". */
const char *homes_escape(const char *code);
/* The path of the list, beside a map of namespaces. */
const char *homes_path(struct arena *arena, const char *map);

#endif
