/* in_flight: the requests that workers of this instance have begun and not answered.
 *
 * A request waits unread in a kept connection while its worker is busy with another.  When the worker dies,
 * nginx gets no answer to either and sends both again, with a note: a redelivery.  A redelivered request is
 * done if it is certain that no worker had begun it: its token is not in this table, and it is younger than
 * every entry that was dropped.  In doubt it is not done.
 *
 * An entry belongs to one worker, and to the master when that worker is gone: nobody else writes it. */
#ifndef STAMPD_SERVE_IN_FLIGHT_H
#define STAMPD_SERVE_IN_FLIGHT_H

#include "base/base.h"
#include "base/bytes.h"
#include "segment/losses.h"

struct in_flight;

/* Shared with all children who are forked from now on, for the whole life of the process; nothing older than
 * `now_ms` (monotonic) is known. */
struct in_flight *in_flight_create(int places, int64_t now_ms) __attribute__((returns_nonnull));

/* The same for servers that follow each other, by a descriptor that one hands to the next: made when it is
 * -1. `is_alone`: the former one is gone, and what its workers had begun will never be answered.  NULL: it is
 * that of another release. */
struct in_flight *in_flight_open(int places, int64_t now_ms, int *descriptor, bool is_alone);

/* What nginx says of a request. */
struct redelivery {
    struct bytes token; /* 1 to 64 bytes, no NUL, that no other request has */
    /* Empty when it is handed in for the first time; else what came of that: how many bytes had been
     * answered, and how many seconds ago it was, as 0.125. */
    struct bytes answered, age;
};
/* The first worker that it was handed to has declined it, without harm: only what came after counts. */
void redelivery_forget_first(struct redelivery *redelivery);
bool redelivery_is_again(const struct redelivery *redelivery);

/* How a request ended that was begun and not answered. */
struct fate {
    enum loss_cause cause; /* why its worker ended */
    bool in_application;   /* code of an application was running */
    bool is_unchanged;     /* it had changed nothing, and does not any more */
};

/* The worker begins with it; false: somebody may have begun it before, it must not be done. */
MUST_USE bool in_flight_start(struct in_flight *in_flight, int place, const struct redelivery *redelivery,
                              int64_t now_ms);
/* It is answered. */
void in_flight_end(struct in_flight *in_flight, int place);
/* It will never be answered: the worker is gone, or the answer could not be sent.  What is remembered is a
 * few for each place. */
void in_flight_retire(struct in_flight *in_flight, int place, const struct fate *fate, int64_t now_ms);
/* What became of a request of this token. */
enum found_fate {
    FATE_FOUND, /* it is buried */
    FATE_LATER, /* it is at work somewhere, or its worker is dead and it is not buried yet */
    FATE_NONE,  /* it never was begun, was answered, or is forgotten */
};
/* fate_r is LOSS_UNKNOWN when it is not found. */
MUST_USE enum found_fate in_flight_find(const struct in_flight *in_flight, struct bytes token,
                                        struct fate *fate_r);

#endif
