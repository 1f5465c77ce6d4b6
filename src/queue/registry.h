/* registry: which namespaces there are and which of them are this manager's, read from the database of z
 * again and again, without ever waiting for it. */
#ifndef STAMPD_QUEUE_REGISTRY_H
#define STAMPD_QUEUE_REGISTRY_H

#include <poll.h>

#include "base/settings.h"

struct registry;

/* A namespace belongs to the manager that its configuration names as "queue", else to "qm". */
struct registry *registry_create(const struct settings *settings);
void registry_destroy(struct registry *registry); /* NULL is allowed */

/* What it waits for, with -1 for nothing; returns until when at most, on the monotonic clock. */
int64_t registry_poll(const struct registry *registry, struct pollfd *socket_r);
/* Goes on.  True: there is a new list, which lives until the next turn. */
bool registry_turn(struct registry *registry, const char *const **codes_r, size_t *count_r);
/* Asks anew soon. */
void registry_hurry(struct registry *registry);

#endif
