/* spool_files: each write, fsync and rename is a step (spool_step.h). */
#include "spool/spool_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A pause between two tries is a part of what has been waited. */
enum { TRIES = 30, PAUSE_PART = 4, PAUSE_LEAST_US = 1, PAUSE_MOST_US = 20000 };

int64_t spool_files_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t spool_files_limit_us(void)
{
    return spool_files_now_us() + spool_step_lock_ms * INT64_C(1000);
}

/* The kernel could make the caller wait, but without a limit. */
int spool_files_lock(int fd)
{
    int error = spool_files_try_lock(fd);
    int64_t begin_us = error == EWOULDBLOCK ? spool_files_now_us() : 0, waited_us = 0;
    while (error == EWOULDBLOCK && waited_us < spool_step_lock_ms * INT64_C(1000)) {
        int64_t pause_us = waited_us / PAUSE_PART;
        pause_us = pause_us > PAUSE_LEAST_US ? pause_us : PAUSE_LEAST_US;
        pause_us = pause_us < PAUSE_MOST_US ? pause_us : PAUSE_MOST_US;
        nanosleep(&(struct timespec){.tv_nsec = pause_us * 1000}, NULL);
        error = spool_files_try_lock(fd);
        waited_us = spool_files_now_us() - begin_us;
    }
    return error == EWOULDBLOCK ? ETIMEDOUT : error;
}

/* Those that wake together hold it for a few microseconds each: to sleep would take longer. */
int spool_files_lock_soon(int fd)
{
    int error = spool_files_try_often(fd);
    return error == EWOULDBLOCK ? spool_files_lock(fd) : error;
}

int spool_files_try_often(int fd)
{
    int error = EWOULDBLOCK;
    for (int tries = 0; error == EWOULDBLOCK && tries < TRIES; tries++)
        error = spool_files_try_lock(fd);
    return error;
}

int spool_files_try_lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;
}

void spool_files_unlock(int fd)
{
    flock(fd, LOCK_UN);
}

int spool_files_read(int fd, void *data, size_t size, uint64_t offset, size_t *read_r)
{
    *read_r = 0;
    while (*read_r < size) {
        ssize_t count = pread(fd, (char *)data + *read_r, size - *read_r, (off_t)(offset + *read_r));
        if (count < 0 && errno != EINTR)
            return errno;
        if (!count)
            break;
        if (count > 0)
            *read_r += (size_t)count;
    }
    return 0;
}

int spool_files_write(int fd, const void *data, size_t size, uint64_t offset)
{
    size_t done = 0;
    spool_step();
    while (done < size) {
        ssize_t count = pwrite(fd, (const char *)data + done, size - done, (off_t)(offset + done));
        if (count < 0 && errno != EINTR)
            return errno;
        if (!count)
            return ENOSPC;
        if (count > 0)
            done += (size_t)count;
    }
    spool_step();
    return 0;
}

int spool_files_sync(int fd)
{
    spool_step();
    int error = fsync(fd) ? errno : 0;
    spool_step();
    return error;
}

int spool_files_replace(int folder, const char *name, mode_t mode, const void *data, size_t size)
{
    char fresh[SPOOL_NAME_BYTES + 8];
    snprintf(fresh, sizeof fresh, "%s.new", name);
    int fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    int error = fchmod(fd, mode) ? errno : spool_files_write(fd, data, size, 0);
    if (!error)
        error = spool_files_sync(fd);
    close(fd);
    if (!error && renameat(folder, fresh, folder, name))
        error = errno;
    spool_step();
    if (!error)
        return spool_files_sync(folder);
    unlinkat(folder, fresh, 0);
    return error;
}

/* To be written in place; -1: it is not there, or somebody else of the group has made it, whose file may not
 * be writable, or not be given another mode. */
static int open_own(int folder, const char *name)
{
    struct stat stat;
    int fd = openat(folder, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 ||
        (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_nlink == 1 && stat.st_uid == geteuid()))
        return fd;
    close(fd);
    return -1;
}

/* Keeps the room of the text. */
static void spoil(int fd)
{
    if (pwrite(fd, "", 1, 0) < 0)
        return; /* it has not had any */
}

int spool_files_rewrite(int folder, const char *name, mode_t mode, const void *data, size_t size)
{
    int fd = open_own(folder, name), error = 0;
    if (fd < 0) {
        if (unlinkat(folder, name, 0) && errno != ENOENT)
            return errno;
        return spool_files_replace(folder, name, mode, data, size);
    }
    if (fchmod(fd, mode))
        error = errno;
    if (!error)
        error = spool_files_write(fd, data, size, 0);
    if (!error && ftruncate(fd, (off_t)size)) /* it was longer: its first block stays */
        error = errno;
    if (!error)
        error = spool_files_sync(fd);
    if (error)
        spoil(fd);
    close(fd);
    return error;
}

int spool_files_sync_again(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno;
    int error = spool_files_sync(fd);
    close(fd);
    return error ? error : spool_files_sync(folder);
}

int spool_files_load(int folder, const char *name, size_t most, char **data_r, size_t *size_r)
{
    struct stat stat;
    int error = 0, fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    *data_r = NULL;
    if (fd < 0)
        return errno;
    if (fstat(fd, &stat))
        error = errno;
    else if (stat.st_size < 0 || (uint64_t)stat.st_size > most)
        error = EBADMSG;
    else if (!(*data_r = malloc((size_t)stat.st_size + 1)))
        error = ENOMEM;
    if (!error)
        error = spool_files_read(fd, *data_r, (size_t)stat.st_size, 0, size_r);
    close(fd);
    if (!error)
        (*data_r)[*size_r] = 0;
    return error;
}

int spool_files_reserve(unsigned char **buffer, size_t *capacity, size_t size)
{
    if (size <= *capacity)
        return 0;
    size_t larger = size < 4096 ? 4096 : size + size / 2;
    unsigned char *grown = realloc(*buffer, larger);
    if (!grown)
        return ENOMEM;
    *buffer = grown;
    *capacity = larger;
    return 0;
}
