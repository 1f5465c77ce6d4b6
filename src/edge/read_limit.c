/* read_limit: one timer for the process, started when none runs.  When it fires, it either ends the read in
 * progress or, if that read has time left, is set again for the rest. */
#include "edge/read_limit.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

enum { NOBODY = -1 };

static timer_t timer;
static bool is_made;
static _Atomic bool is_set;
static _Atomic int reading = NOBODY;
static _Atomic int64_t until_ms;

static void set_timer(int64_t ms)
{
    struct itimerspec when = {.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 + 1}};
    timer_settime(timer, 0, &when, NULL);
}

/* Everything it calls is async-signal-safe. */
static void on_timer(int signal)
{
    int before = errno;
    int64_t left_ms = atomic_load(&until_ms) - clock_monotonic_ms();
    int fd = atomic_load(&reading);
    (void)signal;
    if (fd != NOBODY && left_ms > 0) {
        set_timer(left_ms);
    } else {
        if (fd != NOBODY)
            shutdown(fd, SHUT_RD);
        atomic_store(&is_set, false);
    }
    errno = before;
}

static void make_timer(void)
{
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    if (sigaction(SIGRTMIN, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer))
        log_fatal("cannot limit the time of reading: %m");
    is_made = true;
}

void read_limit_begin(int fd, int64_t limit_ms)
{
    if (!is_made)
        make_timer();
    atomic_store(&until_ms, clock_monotonic_ms() + limit_ms);
    atomic_store(&reading, fd);
    if (!atomic_exchange(&is_set, true))
        set_timer(limit_ms);
}

void read_limit_end(void)
{
    atomic_store(&reading, NOBODY);
}
