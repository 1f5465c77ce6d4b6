/* live_opening: a request until its answer begins; made by live_endpoint.c, used by live_listener.c. */
#ifndef STAMPD_LIVE_LIVE_OPENING_H
#define STAMPD_LIVE_LIVE_OPENING_H

#include "live/live_horizon.h"
#include "live/topics/live_question.h"
#include "operation/reply.h"
#include "http/response.h"

struct live_opening {
    struct arena *arena; /* which the opening is in, too */
    struct live_question question;
    struct response_form form;
    struct bytes origin;
    bool comes_again;         /* an EventSource: reconnects by itself unless the status is other than 200 */
    struct live_horizon last; /* of the id; horizon 0: a new stream */
    bool is_settled;          /* `reply` is its answer; it waits for the rules only to know the origin */
    struct reply reply;
};

#endif
