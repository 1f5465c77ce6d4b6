/* futex: the system call, for which libc has no function. */
#include "edge/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(_Atomic uint32_t) == 4, "a futex is a word of 32 bits");

void futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t ms)
{
    const struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    if (ms > 0)
        syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}
