/* spool_handle: the open handles of the process.
 *
 * A lock of flock(2) belongs to an open file, which a child shares, by descriptors and by mapped memory.  So
 * a child closes the files: else the locks of a parent that died would last as long as the child. */
#include "spool/spool_private.h"

#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct stampd_spool *last; /* open handle */
static int failure;

static void spool_handle_release(struct stampd_spool *spool)
{
    int *const fds[] = {&spool->folder, &spool->lock,          &spool->next, &spool->synced,
                        &spool->board,  &spool->position_lock, &spool->hold, &spool->watch};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
    spool_segment_close(&spool->writing);
    for (size_t i = 0; i < SPOOL_READINGS; i++)
        spool_segment_close(&spool->readings[i]);
    spool_shared_unmap(spool); /* the memory keeps the file open, with its lock */
}

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

static void after_fork_in_child(void)
{
    for (struct stampd_spool *spool = last; spool; spool = spool->earlier)
        spool_handle_release(spool);
    pthread_mutex_unlock(&mutex);
}

static void spool_handle_begin(void)
{
    failure = pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

int spool_handle_add(struct stampd_spool *spool)
{
    pthread_once(&once, spool_handle_begin);
    if (failure)
        return failure;
    pthread_mutex_lock(&mutex);
    spool->earlier = last;
    if (last)
        last->later = spool;
    last = spool;
    pthread_mutex_unlock(&mutex);
    return 0;
}

void spool_handle_remove(struct stampd_spool *spool)
{
    pthread_mutex_lock(&mutex);
    if (last == spool)
        last = spool->earlier;
    if (spool->earlier)
        spool->earlier->later = spool->later;
    if (spool->later)
        spool->later->earlier = spool->earlier;
    spool->earlier = spool->later = NULL;
    spool_handle_release(spool); /* a fork waits until it is: the child would keep what is open */
    pthread_mutex_unlock(&mutex);
}
