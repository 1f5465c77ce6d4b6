/* remote_wakeups: wakes the queue managers of other hosts (setting queue_remotes): POST /{qm}/op, op=inq, for
 * each namespace in which tasks start soon.  Runs in the relay, so that no request waits for another host.  A
 * wake-up that fails is retried with backoff; meanwhile the manager's scans find its tasks. */
#ifndef STAMPD_SERVE_REMOTE_WAKEUPS_H
#define STAMPD_SERVE_REMOTE_WAKEUPS_H

#include <poll.h>

#include "base/settings.h"
#include "segment/segment.h"

struct remote_wakeups;

/* NULL: there are no remote managers, or the key cannot be read, which is logged. */
struct remote_wakeups *remote_wakeups_create(const struct settings *settings);
void remote_wakeups_destroy(struct remote_wakeups *remote_wakeups); /* NULL is allowed */

/* Sends what is due and waits at most `wait_ms` for one of `sources` to be ready: true.  `wakeups` may be
 * NULL. */
bool remote_wakeups_wait(struct remote_wakeups *remote_wakeups, struct segment *segment, int wait_ms,
                         struct pollfd *sources, size_t count);

#endif
