/* registry: polls the database of z for the namespaces that belong to this manager, without blocking. */
#ifndef STAMPD_QUEUE_REGISTRY_H
#define STAMPD_QUEUE_REGISTRY_H

#include <poll.h>

#include "base/settings.h"

struct registry;

/* A namespace belongs to the manager named by "queue" in its configuration; without it, to "qm". */
struct registry *registry_create(const struct settings *settings);
void registry_destroy(struct registry *registry); /* NULL is allowed */

/* The socket to poll, -1 for none; returns the deadline of the poll, monotonic. */
int64_t registry_poll(const struct registry *registry, struct pollfd *socket_r);
/* Continues.  True: there is a new list, valid until the next call. */
bool registry_turn(struct registry *registry, const char *const **codes_r, size_t *count_r);
/* Queries again soon. */
void registry_hurry(struct registry *registry);

#endif
