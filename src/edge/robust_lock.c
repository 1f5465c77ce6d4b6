/* robust_lock: a robust mutex of the GNU C library, shared by processes. */
#include "edge/robust_lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/log.h"

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(struct robust_lock), "the mutex fits");
_Static_assert(sizeof(pthread_mutex_t) % sizeof(uint32_t) == 0, "the mutex is whole words");
_Static_assert(_Alignof(pthread_mutex_t) <= _Alignof(struct robust_lock), "the mutex is aligned");

static pthread_mutex_t *mutex_of(struct robust_lock *lock)
{
    return (pthread_mutex_t *)(void *)lock->words;
}

static void robust_lock_end(const char *what, int error)
{
    errno = error;
    log_fatal("%s a lock: %m", what);
}

/* An unlocked mutex is zero but for the words that say of which kind it is, and these never change: storing
 * only them makes a mutex of zeros and leaves one that is in use as it is. */
void robust_lock_init(struct robust_lock *lock)
{
    pthread_mutexattr_t attributes;
    union {
        pthread_mutex_t mutex;
        uint32_t words[sizeof(pthread_mutex_t) / sizeof(uint32_t)];
    } image;
    memset(&image, 0, sizeof image);
    pthread_mutexattr_init(&attributes);
    int error = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (!error)
        error = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (!error)
        error = pthread_mutex_init(&image.mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    if (error)
        robust_lock_end("creating", error);
    for (size_t i = 0; i < COUNT_OF(image.words); i++)
        if (image.words[i])
            atomic_store((_Atomic uint32_t *)&lock->words[i], image.words[i]);
}

enum robust_lock_result robust_lock_take(struct robust_lock *lock, int64_t timeout_ms)
{
    int error = pthread_mutex_trylock(mutex_of(lock));
    if (error == EBUSY) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += timeout_ms / 1000;
        until.tv_nsec += timeout_ms % 1000 * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        error = pthread_mutex_clocklock(mutex_of(lock), CLOCK_MONOTONIC, &until);
    }
    if (error == ETIMEDOUT)
        return ROBUST_LOCK_REFUSED;
    if (error && error != EOWNERDEAD)
        robust_lock_end("taking", error);
    return error ? ROBUST_LOCK_INHERITED : ROBUST_LOCK_TAKEN;
}

/* A mutex that was inherited is made consistent only here: until then, the death of this process is inherited
 * in turn.  For any other mutex the first call returns an error and changes nothing. */
void robust_lock_release(struct robust_lock *lock)
{
    pthread_mutex_consistent(mutex_of(lock));
    int error = pthread_mutex_unlock(mutex_of(lock));
    if (error)
        robust_lock_end("releasing", error);
}
