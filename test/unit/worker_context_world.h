/* worker_context_world: a worker's worker context over rows in memory (fake_store), with a namespace `lab`,
 * for tests of operations. */
#ifndef STAMPD_TEST_WORKER_CONTEXT_WORLD_H
#define STAMPD_TEST_WORKER_CONTEXT_WORLD_H

#include "operation/worker_context.h"
#include "serve/route.h"
#include "segment/slots.h"
#include "operation/reply.h"

extern struct settings settings;
extern struct segment *segment;
extern struct worker_context worker_context;
extern struct arena *arena;
extern struct builder body; /* of the last answer, with a NUL behind it */
extern struct reply reply;

/* Makes all of them; `limits` are the settings that the tests need, what every worker needs is added: the
 * administrator's key is "open sesame", hosts are one.  Returns 0, as cmocka wants it. */
int worker_context_world_open(const struct settings *limits);
int worker_context_world_close(void **state);

/* The namespace's configuration is changed by a commit of the administrator, as psql and the relay would
 * make it. */
void configure(const char *conf);
/* JSON as the server builds it, but deeper. */
const struct json *parse(const char *text);
/* Runs the call, of namespace `lab` where it names none, and answers into `body`; a member of `reply` that is
 * set before stays unless the operation sets it. */
enum fault run_in_world(struct call *call);

#endif
