/* journal_turns: a list, and a timer that fires after each look at the sockets while a connection waits. */
#include "journal/journal_turns.h"

#include <stdlib.h>

#include "base/memory.h"

struct journal_turns {
    struct events_timer *timer;
    struct journal_turn *first, *last;
};

static void journal_turns_append(struct journal_turns *turns, struct journal_turn *turn)
{
    turn->next = NULL;
    *(turns->last ? &turns->last->next : &turns->first) = turn;
    turns->last = turn;
}

/* The timer is started before the connection goes on: the callback may end the connection, and events run a
 * timer that is started here only after they have looked at all descriptors again. */
static void on_turn(void *context)
{
    struct journal_turns *turns = context;
    struct journal_turn *turn = turns->first;
    if (!turn)
        return;
    turns->first = turn->next;
    turns->last = turns->first ? turns->last : NULL;
    turn->steps = turn->steps < 0 ? turn->steps + JOURNAL_TURN_STEPS : JOURNAL_TURN_STEPS;
    turn->is_waiting = turn->steps <= 0;
    if (turn->is_waiting)
        journal_turns_append(turns, turn);
    if (turns->first)
        events_timer_start(turns->timer, 0);
    if (!turn->is_waiting)
        turn->go(turn->context);
}

struct journal_turns *journal_turns_create(struct events *events)
{
    struct journal_turns *turns = memory_zeroed(1, sizeof *turns, "starting the line of connections");
    turns->timer = events_timer_create(events, on_turn, turns);
    return turns;
}

void journal_turns_destroy(struct journal_turns *turns)
{
    assert(!turns->first);
    events_timer_destroy(turns->timer);
    free(turns);
}

void journal_turns_wait(struct journal_turns *turns, struct journal_turn *turn)
{
    if (turn->is_waiting)
        return;
    if (!turns->first)
        events_timer_start(turns->timer, 0);
    turn->is_waiting = true;
    journal_turns_append(turns, turn);
}

void journal_turns_leave(struct journal_turns *turns, struct journal_turn *turn)
{
    if (!turn->is_waiting)
        return;
    turn->is_waiting = false;
    struct journal_turn *last = NULL;
    for (struct journal_turn **link = &turns->first; *link;)
        if (*link == turn) {
            *link = turn->next;
        } else {
            last = *link;
            link = &last->next;
        }
    turns->last = last;
}
