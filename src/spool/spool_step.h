/* spool_step: named steps at which a process that uses the spool dies, and how long it waits, for tests.
 *
 * The environment variable STAMPD_SPOOL_DIE_AT=N makes it kill itself at its N-th step: each write, fsync,
 * rename and removal is one, before and after.  As in the server every build has them; unarmed, a step costs
 * a load and a branch. */
#ifndef STAMPD_SPOOL_SPOOL_STEP_H
#define STAMPD_SPOOL_SPOOL_STEP_H

extern long spool_step_left;   /* 0: not armed */
extern int spool_step_lock_ms; /* how long a lock is waited for: ten seconds, or STAMPD_SPOOL_LOCK_MS */

/* Reads the environment; a program with more rights than its user ignores it. */
void spool_step_arm(void);
void spool_step_pass(void);

static inline void spool_step(void)
{
    if (__builtin_expect(spool_step_left != 0, 0))
        spool_step_pass();
}

#endif
