/* answer: what a server's answer means for the client: done, retry later, refused, hopeless. */
#ifndef STAMPD_CONTROL_ANSWER_H
#define STAMPD_CONTROL_ANSWER_H

#include "base/arena.h"
#include "edge/http.h"

enum answer_kind {
    ANSWER_DONE,
    ANSWER_AGAIN, /* the server is temporarily unable, or no whole answer came: contention, overload, restart
                   */
    ANSWER_REFUSED,  /* these documents are refused, others may be accepted */
    ANSWER_HOPELESS, /* any request would be refused: key, namespace, address, maintenance */
};

struct server_answer {
    const char *code;  /* "AVERSION"; "HTTP 413" when the answer has no code; "" when there is no answer */
    const char *words; /* for people */
};

enum answer_kind answer_read(struct arena *arena, const struct http_result *result,
                             struct server_answer *answer_r);

#endif
