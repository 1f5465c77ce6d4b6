/* runner: the requests that run tasks and scan for them, and what their answers mean. */
#ifndef STAMPD_QUEUE_RUNNER_H
#define STAMPD_QUEUE_RUNNER_H

#include "queue/manager_private.h"

/* Starts due tasks that have a place. */
void runner_start_due(struct manager *manager);
/* Will the task end soon, by the estimate for its operation? */
bool runner_is_quick(void *manager, const struct agenda_task *task);
/* Sends the request for the tasks of a namespace that start before this time (wall clock). */
void runner_scan(struct manager *manager, int ns, int64_t before_ms);
/* Handles the end of a request or mail. */
void runner_end(struct manager *manager, const struct http_result *result);
/* Drops the requests in progress; the HTTP client is closed. */
void runner_drop_all(struct manager *manager);
/* Reads a task from the server's answer, a row of `due` (tasks.md); false: not a valid row. */
bool runner_read_row(int ns, const struct json *row, struct agenda_entry *entry_r);

#endif
