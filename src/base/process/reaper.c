/* reaper: a list of processes, mostly empty. */
#include "base/process/reaper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/memory.h"

enum { STEP_MS = 1 };

static pid_t *killed;
static size_t count, capacity;

void reaper_reap(void)
{
    for (size_t i = count; i-- > 0;) {
        pid_t ended = waitpid(killed[i], NULL, WNOHANG);
        if (ended > 0 || (ended < 0 && errno == ECHILD))
            killed[i] = killed[--count];
    }
}

void reaper_kill(pid_t pid)
{
    if (count == capacity) {
        capacity = capacity ? 2 * capacity : 8;
        killed = memory_grown(killed, capacity, sizeof *killed, "ending a process");
    }
    (void)kill(pid, SIGKILL);
    killed[count++] = pid;
    reaper_reap();
}

size_t reaper_count(void)
{
    return count;
}

bool reaper_await(int64_t most_ms)
{
    const int64_t end_ms = clock_monotonic_ms() + most_ms;
    for (reaper_reap(); count && clock_monotonic_ms() < end_ms; reaper_reap())
        clock_sleep_ms(STEP_MS);
    return !count;
}
