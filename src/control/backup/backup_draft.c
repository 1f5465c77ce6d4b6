/* backup_draft: no name is followed elsewhere: the folder belongs to a user who may do less than ours. */
#include "control/backup/backup_draft.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "control/message.h"

struct backup_draft {
    const struct backup_owner *owner;
    int fd;
    char name[BACKUP_PATH_MOST];
};

static bool backup_draft_fail(const char *path)
{
    message_print("%s: %s", path, strerror(errno));
    return false;
}

/* What is there is not written into: it may be a link to another file, or a pipe. */
static int make_file(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return -1;
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

struct backup_draft *backup_draft_begin(const char *path, const struct backup_owner *owner)
{
    struct backup_draft *draft = calloc(1, sizeof *draft);
    if (!draft)
        log_fatal("out of memory backup");
    draft->owner = owner;
    draft->fd = -1;
    errno = ENAMETOOLONG;
    if (snprintf(draft->name, sizeof draft->name, "%s" BACKUP_DRAFT_END, path) < BACKUP_PATH_MOST)
        draft->fd = make_file(draft->name);
    if (draft->fd >= 0)
        return draft;
    (void)backup_draft_fail(path);
    free(draft);
    return NULL;
}

int backup_draft_fd(const struct backup_draft *draft)
{
    return draft->fd;
}

static bool is_complete(const struct backup_draft *draft, int64_t size)
{
    struct stat status;
    if (fstat(draft->fd, &status) != 0)
        return false;
    errno = EIO;
    return status.st_size == size;
}

bool backup_draft_finish(struct backup_draft *draft, const char *path, int64_t size)
{
    const struct backup_owner *owner = draft->owner;
    bool is_done = is_complete(draft, size) && fchmod(draft->fd, owner->file_mode) == 0 &&
                   (geteuid() != 0 || fchown(draft->fd, owner->user, owner->group) == 0) &&
                   fsync(draft->fd) == 0 && rename(draft->name, path) == 0;
    if (is_done) {
        close(draft->fd);
        free(draft);
        return true;
    }
    (void)backup_draft_fail(path);
    backup_draft_abandon(draft);
    return false;
}

void backup_draft_abandon(struct backup_draft *draft)
{
    if (!draft)
        return;
    close(draft->fd);
    unlink(draft->name);
    free(draft);
}

/* A link that root or the caller has made leads to another disk, perhaps; others are not followed. */
static bool is_trusted(const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0)
        return false;
    errno = ELOOP;
    return !S_ISLNK(status.st_mode) || status.st_uid == 0 || status.st_uid == geteuid();
}

bool backup_draft_folder(const char *named, const struct backup_owner *owner)
{
    char path[BACKUP_PATH_MOST];
    size_t size = strlen(named);
    while (size > 1 && named[size - 1] == '/') /* a link would be followed */
        size--;
    errno = ENAMETOOLONG;
    if (snprintf(path, sizeof path, "%.*s", (int)size, named) >= BACKUP_PATH_MOST)
        return backup_draft_fail(named);
    if (mkdir(path, 0700) != 0)
        return (errno == EEXIST && is_trusted(path)) || backup_draft_fail(path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is_made = fd >= 0 && fchmod(fd, owner->folder_mode) == 0 &&
                   (geteuid() != 0 || fchown(fd, owner->user, owner->group) == 0);
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    if (!is_made)
        return backup_draft_fail(path);
    strrchr(path, '/')[1] = '\0';
    return backup_draft_sync(path);
}

bool backup_draft_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return is_synced || backup_draft_fail(path);
}
