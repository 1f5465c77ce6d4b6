/* journal_ends: DONE and FAIL that wait for the next task are two requests to the server (workers.md): the
 * end, which leaves the wait to another request, and a `take` that follows it.
 *
 * So it is known, while the wait lasts, that the end has happened: the wait can be given up or fail without a
 * doubt about it.  The client gets one answer, that of an end which has waited.  Pure. */
#ifndef STAMPD_JOURNAL_JOURNAL_ENDS_H
#define STAMPD_JOURNAL_JOURNAL_ENDS_H

#include "base/arena.h"
#include "base/builder.h"
#include "edge/json/json.h"

/* The object with the members of `take` in the param of an end; NULL: there is none. */
const struct json *journal_ends_take(struct arena *arena, const struct json *param);

/* The params of both requests, appended; that of the second without its wait and its last brace.  False,
 * nothing is appended: it does not wait, or the caller itself leaves the wait to another request. */
bool journal_ends_split(struct bytes param, struct builder *end, struct builder *following);
/* Completes the second one. */
void journal_ends_add_wait(struct builder *following, int64_t wait_s);

/* How many seconds the server's answer to the first request leaves to the second; 0: there is nothing to wait
 * for. */
int64_t journal_ends_wait_s(struct bytes answer);
/* Appends the answer for the client.  `later`: the server's answer to the second request; without one that
 * can be read, NO_BYTES, there are no tasks, and the client is to come again after a pause. */
void journal_ends_join(struct builder *out, struct bytes answer, struct bytes later, int64_t pause_ms);

#endif
