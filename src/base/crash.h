/* crash: named steps at which a process kills itself with SIGKILL, so that tests can check the state that a
 * crash leaves (setting debug_die_at; crash_table.h lists the steps).
 *
 * Every build has them: the tested code is the code in production.  Until a step is armed, each costs one
 * load of a static pointer and a branch that is never taken. */
#ifndef STAMPD_BASE_CRASH_H
#define STAMPD_BASE_CRASH_H

#include "base/base.h"

enum crash_point {
#define POINT(name, word, what) CRASH_##name,
#include "base/crash_table.h"
#undef POINT
    CRASH_POINTS
};

/* Is it a list of STEP[:PASSAGE[:DEATHS]], separated by blanks?  On failure returns false, with the entry in
 * `wrong_r`. */
MUST_USE bool crash_is_list(const char *text, const char **wrong_r, size_t *wrong_size_r);

/* Arms the steps of such a list and disarms the others.  The process that reaches a step for the PASSAGE-th
 * time, counted over all processes, dies there, and so do the next ones until DEATHS have died (both default
 * to 1).  For the master, at start and at each reload: children forked after the first list that is not empty
 * share the counters, which lie in memory from `share`.  The same list as before changes nothing. */
void crash_arm(const char *text, void *(*share)(size_t bytes));

extern struct crash_board *crash_board; /* NULL: no step was ever armed */
void crash_pass(enum crash_point point);

static inline void crash_at(enum crash_point point)
{
    if (__builtin_expect(crash_board != NULL, 0))
        crash_pass(point);
}

#endif
