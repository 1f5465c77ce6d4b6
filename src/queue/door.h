/* door: what administrators and servers of other hosts ask of a manager: /{qm}/op through nginx.
 *
 * POST with op (also in the query string), key and param, in a form or as JSON; the key never in an address.
 *     list     what is known: tasks, namespaces
 *     suspend  nothing new is started; what runs goes on
 *     restart  ends that
 *     scan     of param.ns, or of all namespaces, as soon as may be
 *     inq      param: a task that may be due soon, as a hint */
#ifndef STAMPD_QUEUE_DOOR_H
#define STAMPD_QUEUE_DOOR_H

#include "base/identity.h"
#include "queue/manager.h"

struct door;
struct json;
struct manager;

/* Listens at <run_directory>/<queue_code>.sock; on failure NULL with one line in `problem`. */
struct door *door_open(struct manager *manager, const struct identity *identity, char *problem,
                       size_t problem_size);
void door_close(struct door *door); /* NULL is allowed */
int door_descriptor(const struct door *door);
/* Answers what has come. */
void door_serve(struct door *door);
/* A hint, or the param of inq; false: it is none. */
bool door_take_hint(struct manager *manager, const struct json *hint);

#endif
