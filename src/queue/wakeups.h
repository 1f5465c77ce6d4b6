/* wake-ups: the datagram socket that receives workers' notices of tasks that start soon. */
#ifndef STAMPD_QUEUE_WAKEUPS_H
#define STAMPD_QUEUE_WAKEUPS_H

#include "base/bytes.h"

struct wakeups;

/* Creates the socket.  One left by a dead process at the path is replaced.  If a living process owns it, or
 * it cannot be created: NULL with one line in `problem`. */
struct wakeups *wakeups_open(const char *path, char *problem, size_t problem_size);
void wakeups_close(struct wakeups *wakeups); /* NULL is allowed */
int wakeups_descriptor(const struct wakeups *wakeups);
/* The next wake-up received, valid until the next call; false: none. */
bool wakeups_next(struct wakeups *wakeups, struct bytes *wakeup_r);

#endif
