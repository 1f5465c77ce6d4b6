/* live_found: what a search has found: its page, or why it is refused, and the last differences, so that
 * listeners that have a former page get these.  Each page that differs from the former one has a number, its
 * turn.  Pure. */
#ifndef STAMPD_LIVE_TOPICS_LIVE_FOUND_H
#define STAMPD_LIVE_TOPICS_LIVE_FOUND_H

#include "live/topics/live_page.h"

enum { LIVE_FOUND_STEPS = 8 }; /* differences that are kept */

struct live_found {
    uint64_t turn;          /* 0: nothing yet */
    struct live_page *page; /* NULL: none, or it is refused */
    struct builder fault;   /* why, JSON */
    struct live_found_step {
        char former[LIVE_STAMP_CHARACTERS + 1], stamp[LIVE_STAMP_CHARACTERS + 1];
        struct builder changes; /* members of an event */
    } steps[LIVE_FOUND_STEPS];
    uint64_t first_step; /* the turn that the oldest of them leads to; above `turn`: there are none */
};

void live_found_free(struct live_found *found);
size_t live_found_bytes(const struct live_found *found); /* of memory, without the struct */
/* Takes ownership of the page; the arena is scratch. */
void live_found_take(struct live_found *found, struct live_page *page, struct arena *arena);
void live_found_refuse(struct live_found *found, struct bytes problem);
struct live_found_room {
    size_t most;          /* bytes of live_found_bytes */
    struct bytes problem; /* that a page without room is refused with */
};
/* Takes the answer of the operation `find`, with its head, to a search of this text.  False: it is not known
 * what is found now: there is no answer (NO_BYTES), or a refusal that may be over soon. */
MUST_USE bool live_found_take_answer(struct live_found *found, struct bytes search, struct bytes answer,
                                     const struct live_found_room *room, struct arena *arena);

/* The turn of the page with this stamp; 0: it is not known any more. */
uint64_t live_found_turn_of(const struct live_found *found, struct bytes stamp);
/* Appends the members of an event, each with a comma before it, for a listener that has the page of the turn
 * `known` (0: none): the next difference, the whole, or, for one that has the present page, its stamp.
 * Returns the turn of the page that it has then. */
uint64_t live_found_write(const struct live_found *found, uint64_t known, struct builder *json);

#endif
