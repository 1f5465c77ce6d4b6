/* spool_folder: creates, opens and closes a spool. */
#include "spool/spool_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/spool_crc.h"

#define IDENTITY      "spool"
#define TITLE         "stampd spool 2\n"
#define TITLE_BEFORE  "stampd spool 1\n"
#define SEGMENT_BYTES (UINT64_C(4) << 20)
#define LIMIT_BYTES   (UINT64_C(1) << 30)
enum { IDENTITY_MOST = 4096, ID_DIGITS = 2 * STAMPD_SPOOL_ID_BYTES };

/* Files may be read and written by whom the folder lets in, except everybody. */
static mode_t file_mode(const struct stat *folder)
{
    return (folder->st_mode & S_IWGRP ? 0660 : 0600);
}

static int write_identity(int folder, mode_t mode, const struct stampd_spool_limits *limits)
{
    unsigned char id[STAMPD_SPOOL_ID_BYTES];
    char text[IDENTITY_MOST], digits[ID_DIGITS + 1];
    if (getrandom(id, sizeof id, 0) != sizeof id)
        return EIO;
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(digits + 2 * i, 3, "%02x", id[i]);
    size_t size = (size_t)snprintf(text, sizeof text,
                                   TITLE "id %s\nsegment_bytes %" PRIu64 "\nlimit_bytes %" PRIu64 "\n",
                                   digits, limits->segment_bytes, limits->limit_bytes);
    size += (size_t)snprintf(text + size, sizeof text - size, "%08" PRIx32 "\n", spool_crc(0, text, size));
    return spool_files_replace(folder, IDENTITY, mode, text, size);
}

int stampd_spool_create(const char *path, const struct stampd_spool_limits *limits)
{
    struct stampd_spool_limits wanted = limits ? *limits : (struct stampd_spool_limits){0};
    struct stat stat;
    spool_step_arm();
    wanted.segment_bytes = wanted.segment_bytes ? wanted.segment_bytes : SEGMENT_BYTES;
    wanted.limit_bytes = wanted.limit_bytes ? wanted.limit_bytes : LIMIT_BYTES;
    if (wanted.segment_bytes < SPOOL_SEGMENT_HEAD || wanted.limit_bytes < wanted.segment_bytes)
        return EINVAL;
    if (mkdir(path, 0700) && errno != EEXIST)
        return errno;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return errno;
    int error = fstat(folder, &stat) ? errno : stat.st_mode & S_IWOTH ? EPERM : 0;
    if (!error && !faccessat(folder, IDENTITY, F_OK, 0))
        error = EEXIST;
    if (!error && mkdirat(folder, SPOOL_DEAD, 0700) && errno != EEXIST)
        error = errno;
    if (!error && fchmodat(folder, SPOOL_DEAD, stat.st_mode & 02770, 0))
        error = errno;
    if (!error)
        error = spool_position_create(folder, file_mode(&stat));
    if (!error)
        error = write_identity(folder, file_mode(&stat), &wanted);
    close(folder);
    return error;
}

/* --- opening --- */

static int parse_id(const char *digits, unsigned char id_r[STAMPD_SPOOL_ID_BYTES])
{
    for (size_t i = 0; i < STAMPD_SPOOL_ID_BYTES; i++)
        if (sscanf(digits + 2 * i, "%2hhx", &id_r[i]) != 1)
            return EBADMSG;
    return 0;
}

static int read_identity(struct stampd_spool *spool)
{
    char *text, digits[ID_DIGITS + 1];
    size_t size;
    int error = spool_files_load(spool->folder, IDENTITY, IDENTITY_MOST, &text, &size);
    if (error)
        return error;
    if (!strncmp(text, TITLE_BEFORE, strlen(TITLE_BEFORE))) {
        free(text);
        return ENOTSUP;
    }
    const char *sum = size ? memrchr(text, '\n', size - 1) : NULL;
    if (!sum || strtoul(sum + 1, NULL, 16) != spool_crc(0, text, (size_t)(sum + 1 - text)) ||
        sscanf(text, TITLE "id %32[0-9a-f] segment_bytes %" SCNu64 " limit_bytes %" SCNu64, digits,
               &spool->limits.segment_bytes, &spool->limits.limit_bytes) != 3 ||
        strlen(digits) != ID_DIGITS)
        error = EBADMSG;
    else
        error = parse_id(digits, spool->id);
    free(text);
    return error;
}

static int open_file(const struct stampd_spool *spool, const char *name, int *fd_r)
{
    *fd_r = openat(spool->folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (*fd_r < 0)
        return errno;
    struct stat stat;
    if (fstat(*fd_r, &stat) || ((stat.st_mode & 0777) != spool->file_mode && fchmod(*fd_r, spool->file_mode)))
        return errno;
    return 0;
}

static int open_files(struct stampd_spool *spool)
{
    const struct {
        const char *name;
        int *fd;
    } files[] = {{"lock", &spool->lock},
                 {"next", &spool->next},
                 {"synced", &spool->synced},
                 {"board", &spool->board},
                 {"position", &spool->position_lock},
                 {"forwarder", &spool->hold}};
    int error = 0;
    for (size_t i = 0; !error && i < sizeof files / sizeof *files; i++)
        error = open_file(spool, files[i].name, files[i].fd);
    return error ? error : spool_shared_map(spool);
}

static int open_whole(struct stampd_spool *spool, const char *path)
{
    struct stat stat;
    spool->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (spool->folder < 0 || fstat(spool->folder, &stat))
        return errno;
    if (stat.st_mode & S_IWOTH)
        return EPERM;
    spool->file_mode = file_mode(&stat);
    int error = read_identity(spool);
    if (!error)
        error = open_files(spool);
    if (!error && spool_board_is_present(spool))
        return 0;
    if (!error)
        error = spool_files_lock(spool->lock);
    if (error)
        return error;
    if (!spool_board_is_present(spool))
        error = spool_recovery_run(spool);
    spool_files_unlock(spool->lock);
    return error;
}

int stampd_spool_open(const char *folder, enum stampd_spool_mode mode, struct stampd_spool **spool_r)
{
    struct stampd_spool *spool = calloc(1, sizeof *spool);
    *spool_r = NULL;
    if (!spool)
        return ENOMEM;
    spool_step_arm();
    *spool = (struct stampd_spool){.folder = -1,
                                   .lock = -1,
                                   .next = -1,
                                   .synced = -1,
                                   .board = -1,
                                   .position_lock = -1,
                                   .hold = -1,
                                   .watch = -1,
                                   .mode = mode,
                                   .owner = getpid(),
                                   .writing = {.fd = -1}};
    for (size_t i = 0; i < SPOOL_READINGS; i++)
        spool->readings[i].fd = -1;
    int error = spool_handle_add(spool);
    if (!error)
        error = open_whole(spool, folder);
    if (error)
        stampd_spool_close(spool);
    else
        *spool_r = spool;
    return error;
}

void stampd_spool_close(struct stampd_spool *spool)
{
    if (!spool)
        return;
    spool_handle_remove(spool);
    free(spool->position.ranges);
    free(spool->buffer);
    free(spool->read_buffer);
    free(spool->dead_buffer);
    free(spool);
}

/* --- spool handle --- */

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
