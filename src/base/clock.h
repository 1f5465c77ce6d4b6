/* clock: wall time for stamps, monotonic time for limits and ages. */
#ifndef STAMPD_BASE_CLOCK_H
#define STAMPD_BASE_CLOCK_H

#include "base/base.h"

/* Milliseconds since 1970-01-01 UTC; may step back when the host's clock is set. */
int64_t clock_wall_ms(void);
/* Milliseconds of a clock that never goes back; the same for all processes of a host. */
int64_t clock_monotonic_ms(void);
int64_t clock_monotonic_us(void);
/* The same, with the time for which the host was suspended. */
int64_t clock_boot_ms(void);
/* Minutes since 1970-01-01 UTC: the clock by which documents expire. */
int64_t clock_present_minute(void);
/* The same clock in milliseconds. */
int64_t clock_present_ms(void);
/* The same, as of the kernel's last tick: up to 10 ms ago, at a quarter of the price. */
int64_t clock_present_tick_ms(void);
/* For tests: adds to that clock the number of minutes at the start of the file (int64_t); all processes
 * forked later follow the file.  False: there is no such file. */
MUST_USE bool clock_follow(const char *path);
void clock_sleep_ms(int64_t ms);

#endif
