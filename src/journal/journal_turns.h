/* journal_turns: who goes on, when several connections have more to do than a turn allows.
 *
 * Work is counted in steps, of some 10 ns each.  A connection has JOURNAL_TURN_STEPS; what it does costs some
 * of them, and a message that costs more leaves a debt.  A connection without steps runs no message: it waits
 * in line.  Between two looks at all sockets only the first one in the line gets the steps of a turn.  So
 * what all others wait for between these looks does not grow with the number of connections that have much to
 * do. */
#ifndef STAMPD_JOURNAL_JOURNAL_TURNS_H
#define STAMPD_JOURNAL_JOURNAL_TURNS_H

#include "edge/events.h"

enum { JOURNAL_TURN_STEPS = 25000 };

struct journal_turns;

/* A place in the line, in the memory of its connection, which begins with the steps of a turn. */
struct journal_turn {
    int64_t steps;             /* left; 0 or less: the connection has to wait */
    void (*go)(void *context); /* it has steps, and is not in the line any more */
    void *context;
    bool is_waiting;
    struct journal_turn *next;
};

struct journal_turns *journal_turns_create(struct events *events) __attribute__((returns_nonnull));
/* No connection is in the line. */
void journal_turns_destroy(struct journal_turns *turns);
/* Does nothing if it is in the line already. */
void journal_turns_wait(struct journal_turns *turns, struct journal_turn *turn);
void journal_turns_leave(struct journal_turns *turns, struct journal_turn *turn);

#endif
