/* endpoint: requests of administrators and of servers on other hosts to a manager: /{qm}/op through nginx.
 *
 * POST with op (also in the query string), key and param, as a form or JSON; the key is never in the URL.
 *     list     the known tasks and namespaces
 *     suspend  starts no more tasks; running ones continue
 *     restart  ends a suspension
 *     scan     scans param.ns, or all namespaces, as soon as possible
 *     inq      param: a task that may be due soon, as a wake-up */
#ifndef STAMPD_QUEUE_ENDPOINT_H
#define STAMPD_QUEUE_ENDPOINT_H

#include "base/identity.h"
#include "queue/manager.h"

struct endpoint;
struct json;
struct manager;

/* Listens at <run_directory>/<queue_code>.sock; on failure NULL with one line in `problem`. */
struct endpoint *endpoint_open(struct manager *manager, const struct identity *identity, char *problem,
                               size_t problem_size);
void endpoint_close(struct endpoint *endpoint); /* NULL is allowed */
int endpoint_descriptor(const struct endpoint *endpoint);
/* Answers the requests that have arrived. */
void endpoint_serve(struct endpoint *endpoint);
/* Handles a wake-up, or the param of inq; false: not a valid wake-up. */
bool endpoint_take_wakeup(struct manager *manager, const struct json *wakeup);

#endif
