/* push_send: hands a message for a browser to its push service (RFC 8030), and waits for the answer. */
#ifndef STAMPD_OPERATION_PUSH_PUSH_SEND_H
#define STAMPD_OPERATION_PUSH_PUSH_SEND_H

#include "base/settings.h"
#include "operation/push/webpush.h"

enum push_verdict {
    PUSH_TAKEN,
    PUSH_GONE,      /* there is no such subscription any more, and never will be */
    PUSH_TOO_LARGE, /* a smaller text may be taken */
    PUSH_LATER,     /* the service is busy, broken or cannot be reached */
    PUSH_REFUSED,   /* the same again would be refused again */
};

struct push_outcome {
    enum push_verdict verdict;
    int64_t retry_after_s; /* PUSH_LATER: the service does not want it sooner; 0: it says nothing */
    const char *words;     /* why it was not taken, UTF-8, without the address; in the arena */
};

/* May an address lie on the loopback, and be http:?  In tests only. */
bool push_may_be_local(const struct settings *settings);

/* Is the origin, "https://host", that of a push service that the setting push_services lists?  A refusal in
 * one sentence; NULL: it is, or is on the loopback where that may be. */
const char *push_refuse_service(const struct settings *settings, struct bytes origin);

/* At most some 3 seconds, in which the process does nothing else.  A service that has not answered several
 * times in a row is left alone for a while, which doubles each time: then it is PUSH_LATER at once.  Where
 * the service keeps a message with the same `topic` (up to 32 letters of base64; NULL: none) that the browser
 * has not fetched, this one takes its place. */
void push_send(const struct settings *settings, struct arena *arena, const struct webpush_target *target,
               const struct curve_key *key, struct bytes text, const char *topic,
               struct push_outcome *outcome_r);

#endif
