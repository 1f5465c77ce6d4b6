/* endpoint: what administrators and servers of other hosts ask of a manager: /{qm}/op through nginx.
 *
 * POST with op (also in the query string), key and param, in a form or as JSON; the key never in an address.
 *     list     what is known: tasks, namespaces
 *     suspend  nothing new is started; what runs goes on
 *     restart  ends that
 *     scan     of param.ns, or of all namespaces, as soon as may be
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
/* Answers what has come. */
void endpoint_serve(struct endpoint *endpoint);
/* A wake-up, or the param of inq; false: it is none. */
bool endpoint_take_wakeup(struct manager *manager, const struct json *wakeup);

#endif
