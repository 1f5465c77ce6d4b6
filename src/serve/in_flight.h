/* in_flight: the requests that workers of this instance have begun and not answered.
 *
 * A request may wait unread in a keep-alive connection while its worker is busy with another.  When the
 * worker dies, nginx gets no answer to either and sends both again, marked as redelivered.  A redelivered
 * request is executed only if it is certain that no worker had begun it: its token is not in this table, and
 * it is younger than every entry that was dropped.  If in doubt it is not executed.
 *
 * Each entry has a single writer: its worker, and the master once that worker is gone. */
#ifndef STAMPD_SERVE_IN_FLIGHT_H
#define STAMPD_SERVE_IN_FLIGHT_H

#include "base/arena.h"
#include "base/base.h"
#include "base/bytes.h"
#include "segment/counts/losses.h"

struct in_flight;

/* Shared with all children forked from now on, for the life of the process; it has no record of requests
 * older than `now_ms` (monotonic). */
struct in_flight *in_flight_create(int slots, int64_t now_ms) __attribute__((returns_nonnull));

/* The same, shared by successive servers through a descriptor that each passes to the next; created if the
 * descriptor is -1.  `is_alone`: the former server is gone, and what its workers had begun will never be
 * answered.  NULL: the table belongs to another release. */
struct in_flight *in_flight_open(int slots, int64_t now_ms, int *descriptor, bool is_alone);

/* What nginx sends about a request. */
struct redelivery {
    struct bytes token; /* 1 to 64 bytes, no NUL, that no other request has */
    /* Empty at the first delivery; else the result of the former one: how many bytes had been answered, and
     * how many seconds ago it was, as 0.125. */
    struct bytes answered, age;
};
/* Discards the first delivery: its worker declined the request without executing any of it. */
void in_flight_forget_first(struct redelivery *redelivery);
bool in_flight_is_again(const struct redelivery *redelivery);

/* How a request that was begun but not answered ended. */
struct fate {
    enum loss_cause cause; /* why its worker ended */
    bool in_application;   /* code of an application was running */
    bool is_unchanged;     /* it had changed nothing, and no longer can */
};

/* The worker begins the request; false: a worker may have begun it before, it must not be executed. */
MUST_USE bool in_flight_start(struct in_flight *in_flight, int slot, const struct redelivery *redelivery,
                              int64_t now_ms);
/* The request is answered. */
void in_flight_end(struct in_flight *in_flight, int slot);
/* Its client went before the answer: nginx has given the request up and will not deliver it again.  Should it
 * do so all the same, the request is known, but for a flood of such clients: they make the table forget no
 * other request. */
void in_flight_leave(struct in_flight *in_flight, int slot);
/* The request will never be answered: the worker is gone, or the answer could not be sent.  Each slot keeps
 * its last few. */
void in_flight_retire(struct in_flight *in_flight, int slot, const struct fate *fate, int64_t now_ms);
/* The id that the client gave the request, for the log; empty, or more than 64 bytes: none.  For the worker.
 */
void in_flight_name(struct in_flight *in_flight, int slot, struct bytes given);
/* The id of the request that the worker of the place has begun and not answered, as it is in the logs; NULL:
 * there is no such request.  For the master, when the worker is gone. */
const char *in_flight_request_id(const struct in_flight *in_flight, int slot, struct arena *arena);
/* What became of the request with this token. */
enum found_fate {
    FATE_FOUND, /* it is retired */
    FATE_LATER, /* it is in progress, or its worker is dead and it is not retired yet */
    FATE_NONE,  /* it was never begun, was answered, or its entry was dropped */
};
/* fate_r is LOSS_UNKNOWN unless it is found. */
MUST_USE enum found_fate in_flight_find(const struct in_flight *in_flight, struct bytes token,
                                        struct fate *fate_r);

#endif
