/* live_searcher: the searches that one listener follows, with what it asks for, who it is, and what it has
 * got of each. */
#ifndef STAMPD_LIVE_LIVE_SEARCHER_H
#define STAMPD_LIVE_LIVE_SEARCHER_H

#include "live/topics/live_question.h"

struct live_listener;
struct live_search;
struct live_searcher;

struct live_searching {
    struct live_searcher *owner;
    struct live_search *search; /* NULL: not entered, or there was no room */
    struct live_searching *next, *previous;
    struct bytes text, body;
    size_t position, end; /* as of live_wish */
    uint64_t turn;        /* what was written last; 0: nothing since it entered */
    uint64_t least;       /* the first evaluation that shows what it may see now */
    bool is_refused;      /* there was no room, which is to be written */
    bool has_stamp;       /* what the client had before may be its present page */
};

struct live_searcher {
    struct live_listener *listener; /* NULL: it has not entered yet */
    struct bytes authorization, cookie, client;
    struct bytes *stamps;
    size_t stamp_count, count, bytes, count_own;
    struct live_searching list[];
};

/* By what a worker knows the listener: headers of its request. */
struct live_credential {
    struct bytes authorization, cookie, client;
};
/* Texts are copied.  NULL: it follows no search. */
struct live_searcher *live_searcher_create(const struct live_question *question,
                                           const struct live_credential *credential);
size_t live_searcher_bytes(const struct live_searcher *searcher); /* of memory; NULL is allowed */

#endif
