/* hosts_door: the other programs of this host ask for records in spread namespaces here (records_road.h).
 *
 * Only processes of stamp-journal's own user, and of root, are let in: they have decided what may be done.  A
 * connection has one command at a time. */
#ifndef STAMPD_JOURNAL_HOSTS_HOSTS_DOOR_H
#define STAMPD_JOURNAL_HOSTS_HOSTS_DOOR_H

#include "base/settings.h"
#include "edge/events.h"
#include "journal/hosts/hosts.h"

enum { HOSTS_DOOR_MOST = 512 };

struct hosts_door;

/* `hosts` NULL: this host is none of several, and nobody is let in: `door_r` becomes NULL.  False: one line
 * in `problem`. */
MUST_USE bool hosts_door_open(struct hosts_door **door_r, struct events *events,
                              const struct settings *settings, struct records *records, struct hosts *hosts,
                              const char *path, char *problem, size_t problem_size);
void hosts_door_close(struct hosts_door *door); /* NULL is allowed */

#endif
