/* map: nginx's list of namespaces and their databases. */
#ifndef STAMPD_CONTROL_NGINX_MAP_H
#define STAMPD_CONTROL_NGINX_MAP_H

#include "control/control.h"
#include "control/ns/ns_registry.h"

struct map_options {
    const char *path; /* NULL: namespaces.map beside the settings */
    const char
        *nginx_pid; /* file with nginx's process id, signalled to read its files again; NULL: no signal */
};
/* The map's text: one line `code database;` each.  Leaves out the code `but` (NULL: leaves out none). */
struct bytes map_compose(struct arena *arena, const struct namespace_conf *confs, size_t count,
                         const char *but);
/* The path of the map. */
const char *map_path(struct control *control, const struct map_options *options);
/* Writes the map and, beside it, the homes (homes.h), unless both are up to date, and notifies nginx: through
 * the file with its process id, or with the command of setting nginx_reload when something was written.  On
 * failure reports why. */
MUST_USE bool map_write(struct control *control, const struct map_options *options,
                        const struct namespace_conf *confs, size_t count, const char *but);

#endif
