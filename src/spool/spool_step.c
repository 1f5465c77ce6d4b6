/* spool_step: counts the steps of the process. */
#include "spool/spool_step.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { LOCK_MS = 10000 };

long spool_step_left;
int spool_step_lock_ms = LOCK_MS;

void spool_step_arm(void)
{
    static int is_armed;
    const char *step = is_armed ? NULL : secure_getenv("STAMPD_SPOOL_DIE_AT");
    const char *lock_ms = is_armed ? NULL : secure_getenv("STAMPD_SPOOL_LOCK_MS");
    is_armed = 1;
    if (step)
        spool_step_left = strtol(step, NULL, 10);
    if (lock_ms)
        spool_step_lock_ms = (int)strtol(lock_ms, NULL, 10);
}

void spool_step_pass(void)
{
    if (--spool_step_left == 0)
        kill(getpid(), SIGKILL);
}
