/* crash: named steps at which a process ends itself with SIGKILL, so that tests can see what a death leaves
 * (setting debug_die_at; crash_table.h has the steps).
 *
 * Every build has them: what is tested is what runs.  While nothing was ever armed, a step costs a look at a
 * static pointer and a branch that is never taken. */
#ifndef STAMPD_BASE_CRASH_H
#define STAMPD_BASE_CRASH_H

#include "base/base.h"

enum crash_point {
#define POINT(name, word, what) CRASH_##name,
#include "base/crash_table.h"
#undef POINT
    CRASH_POINTS
};

/* Is it a list of STEP[:PASSAGE[:DEATHS]], parted by blanks?  On failure false, and the entry in `wrong_r`.
 */
MUST_USE bool crash_is_list(const char *text, const char **wrong_r, size_t *wrong_size_r);

/* Arms the steps of such a list and disarms the others: whoever comes to a step for the PASSAGE-th time,
 * counted over all processes, dies there, and those that come after him until DEATHS have (1 and 1 when not
 * said).  For the master, at start and at each reload: children forked after the first list that is not empty
 * share the counters, which lie in memory from `share`.  The same list as before changes nothing. */
void crash_arm(const char *text, void *(*share)(size_t bytes));

extern struct crash_board *crash_board; /* NULL: nothing was ever armed */
void crash_pass(enum crash_point point);

static inline void crash_at(enum crash_point point)
{
    if (__builtin_expect(crash_board != NULL, 0))
        crash_pass(point);
}

#endif
