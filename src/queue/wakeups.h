/* wake-ups: the datagram socket on which workers tell of tasks that start soon. */
#ifndef STAMPD_QUEUE_WAKEUPS_H
#define STAMPD_QUEUE_WAKEUPS_H

#include "base/bytes.h"

struct wakeups;

/* Makes the socket.  What a dead process left at the path is replaced; when a living one has it, or it cannot
 * be made, NULL with one line in `problem`. */
struct wakeups *wakeups_open(const char *path, char *problem, size_t problem_size);
void wakeups_close(struct wakeups *wakeups); /* NULL is allowed */
int wakeups_descriptor(const struct wakeups *wakeups);
/* The next that has come, until the next call; false: none. */
bool wakeups_next(struct wakeups *wakeups, struct bytes *wakeup_r);

#endif
