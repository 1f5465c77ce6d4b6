/* clock: the kernel's clocks, read without a system call where the vDSO has them. */
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static int followed = -1; /* a file whose number of minutes is added */

static int64_t read_us(clockid_t id)
{
    struct timespec now;
    int rc = clock_gettime(id, &now);
    assert(rc == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_wall_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_monotonic_ms(void)
{
    return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_monotonic_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

int64_t clock_boot_ms(void)
{
    return read_us(CLOCK_BOOTTIME) / 1000;
}

static int64_t followed_ms(void)
{
    int64_t added = 0;
    if (followed >= 0 && pread(followed, &added, sizeof added, 0) != sizeof added)
        added = 0;
    return added * 60000;
}

int64_t clock_present_ms(void)
{
    return clock_wall_ms() + followed_ms();
}

int64_t clock_present_tick_ms(void)
{
    return read_us(CLOCK_REALTIME_COARSE) / 1000 + followed_ms();
}

int64_t clock_present_minute(void)
{
    return clock_present_ms() / 60000;
}

bool clock_follow(const char *path)
{
    followed = open(path, O_RDONLY | O_CLOEXEC);
    return followed >= 0;
}

void clock_sleep_ms(int64_t ms)
{
    struct timespec rest = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&rest, &rest) && errno == EINTR)
        ;
}
