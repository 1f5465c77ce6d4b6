/* backup_files: walks STORE/database/shelf/digest; whatever has another name is not a finished file. */
#include "control/backup/backup_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "control/message.h"
#include "model/namespace.h"

/* --- backup draft --- */

struct backup_draft {
    const struct backup_owner *owner;
    int fd;
    char name[BACKUP_PATH_MOST];
};

static bool backup_draft_fail(const char *path)
{
    return message_refuse("%s: %s", path, strerror(errno));
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
    struct backup_draft *draft = memory_zeroed(1, sizeof *draft, "backup");
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

enum { SHELF_NAME = 2, DIGEST_NAME = 64, HEADER_NAME = 16, PIECE = 1 << 20 };

static bool backup_files_fail(const char *path)
{
    return message_refuse("%s: %s", path, strerror(errno));
}

static bool is_hex(const char *name, size_t size)
{
    return strlen(name) == size && strspn(name, "0123456789abcdef") == size;
}

struct files_walk {
    const char *from, *to; /* `to` NULL: nothing is copied, `visit` is called */
    struct backup_owner owner;
    struct backup_files files;
    bool (*visit)(void *context, const struct backup_copy *copy);
    void *context;
};

/* --- one file --- */

static bool copy_bytes(int from, int to)
{
    for (;;) {
        ssize_t got = copy_file_range(from, NULL, to, NULL, PIECE, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
    }
}

/* Another file system, or an old kernel. */
static bool copy_pieces(int from, int to)
{
    static char piece[PIECE];
    for (;;) {
        ssize_t got = read(from, piece, sizeof piece);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        if (!bytes_write(to, (struct bytes){piece, (size_t)got}))
            return false;
    }
}

static bool is_other_way(void)
{
    return errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP;
}

static bool copy_file(const struct files_walk *walk, const char *from, const char *to, int64_t size)
{
    int source = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (source < 0)
        return errno == ENOENT || backup_files_fail(from); /* the cleaner of the store has removed it */
    struct backup_draft *draft = backup_draft_begin(to, &walk->owner);
    int target = draft ? backup_draft_fd(draft) : -1;
    bool is_copied = draft && (copy_bytes(source, target) || (is_other_way() && copy_pieces(source, target)));
    if (draft && !is_copied) {
        (void)backup_files_fail(to);
        backup_draft_abandon(draft);
    }
    close(source);
    return is_copied && backup_draft_finish(draft, to, size);
}

static bool backup_files_take_file(struct files_walk *walk, const char *from, const char *to)
{
    struct stat source, target;
    if (lstat(from, &source) != 0 || !S_ISREG(source.st_mode))
        return true;
    if (lstat(to, &target) == 0 && S_ISREG(target.st_mode) && target.st_size == source.st_size)
        return utimensat(AT_FDCWD, to, NULL, AT_SYMLINK_NOFOLLOW) == 0 || backup_files_fail(to);
    walk->files.count++;
    walk->files.bytes += source.st_size;
    return copy_file(walk, from, to, source.st_size);
}

/* A copy of an encrypted object has some digits of its header behind the digest. */
static bool visit_file(struct files_walk *walk, const char *path, const char *database, const char *name)
{
    char digest[DIGEST_NAME + HEADER_NAME + 2];
    struct stat status;
    size_t size = strlen(name), end = strlen(BACKUP_DRAFT_END);
    bool is_draft = size > end && strcmp(name + size - end, BACKUP_DRAFT_END) == 0;
    size -= is_draft ? end : 0;
    if (size >= sizeof digest)
        return true;
    memcpy(digest, name, size);
    digest[size] = '\0';
    if (size > DIGEST_NAME && digest[DIGEST_NAME] == '.' && is_hex(digest + DIGEST_NAME + 1, HEADER_NAME))
        digest[DIGEST_NAME] = '\0';
    if (!is_hex(digest, DIGEST_NAME) || lstat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return true;
    const struct backup_copy copy = {.path = path,
                                     .database = database,
                                     .digest = digest,
                                     .size = status.st_size,
                                     .seen_s = status.st_mtime,
                                     .is_draft = is_draft};
    return walk->visit(walk->context, &copy);
}

/* --- folders --- */

enum level { DATABASES, SHELVES, FILES };

static bool is_part(const struct files_walk *walk, enum level level, const char *name)
{
    return level == DATABASES ? namespace_is_database(name)
           : level == SHELVES ? is_hex(name, SHELF_NAME)
                              : !walk->to || is_hex(name, DIGEST_NAME);
}

/* `database`: of the level below. */
static bool take_folder(struct files_walk *walk, enum level level, const char *from, const char *to,
                        const char *database)
{
    DIR *directory = opendir(from);
    if (!directory)
        return (level == DATABASES && errno == ENOENT) || backup_files_fail(from);
    bool is_done = !walk->to || level == DATABASES || backup_draft_folder(to, &walk->owner);
    char inner_from[BACKUP_PATH_MOST], inner_to[BACKUP_PATH_MOST];
    int64_t copied = walk->files.count;
    for (struct dirent *entry; is_done && (entry = readdir(directory));) {
        const char *name = entry->d_name;
        if (!is_part(walk, level, name))
            continue;
        int a = snprintf(inner_from, sizeof inner_from, "%s/%s", from, name);
        int b = snprintf(inner_to, sizeof inner_to, "%s/%s", to ? to : "", name);
        errno = ENAMETOOLONG;
        is_done = (a < BACKUP_PATH_MOST && b < BACKUP_PATH_MOST) || backup_files_fail(from);
        if (is_done)
            is_done = level != FILES
                          ? take_folder(walk, level + 1, inner_from, inner_to, level ? database : name)
                      : walk->to ? backup_files_take_file(walk, inner_from, inner_to)
                                 : visit_file(walk, inner_from, database, name);
    }
    closedir(directory);
    return is_done && (!walk->to || copied == walk->files.count || backup_draft_sync(to));
}

/* --- the ways --- */

struct backup_owner backup_files_owner(const struct backup_folder *folder)
{
    const struct passwd *user = getpwnam(folder->user);
    return (struct backup_owner){.user = user ? user->pw_uid : geteuid(),
                                 .group = user ? user->pw_gid : getegid(),
                                 .folder_mode = 0700,
                                 .file_mode = 0600};
}

bool backup_files_owner_of(const char *directory, struct backup_owner *owner_r)
{
    struct stat status;
    if (stat(directory, &status) != 0)
        return backup_files_fail(directory);
    *owner_r = (struct backup_owner){
        .user = status.st_uid, .group = status.st_gid, .folder_mode = 0750, .file_mode = 0440};
    return true;
}

bool backup_files_save(struct control *control, const struct backup_folder *folder, const char *from,
                       struct backup_files *files_r)
{
    struct files_walk walk = {.from = from,
                              .to = arena_printf(control->arena, "%s/files", folder->path),
                              .owner = backup_files_owner(folder)};
    bool is_done =
        backup_draft_folder(walk.to, &walk.owner) && take_folder(&walk, DATABASES, walk.from, walk.to, NULL);
    *files_r = walk.files;
    return is_done;
}

bool backup_files_visit(struct control *control, const struct backup_folder *folder,
                        bool (*visit)(void *context, const struct backup_copy *copy), void *context)
{
    static const char *const parts[] = {"files", "objects"};
    struct files_walk walk = {.visit = visit, .context = context};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (!take_folder(&walk, DATABASES, arena_printf(control->arena, "%s/%s", folder->path, parts[i]),
                         NULL, NULL))
            return false;
    return true;
}

struct pruning {
    int64_t before_s, removed;
};

static bool prune(void *context, const struct backup_copy *copy)
{
    struct pruning *pruning = context;
    if (copy->seen_s >= pruning->before_s)
        return true;
    pruning->removed++;
    return unlink(copy->path) == 0 || backup_files_fail(copy->path);
}

bool backup_files_prune(struct control *control, const struct backup_folder *folder, int64_t before_s,
                        int64_t *removed_r)
{
    struct pruning pruning = {.before_s = before_s};
    bool is_done = backup_files_visit(control, folder, prune, &pruning);
    *removed_r = pruning.removed;
    return is_done;
}

bool backup_files_restore(struct control *control, const struct backup_folder *folder, const char *to,
                          struct backup_files *files_r)
{
    struct files_walk walk = {.from = arena_printf(control->arena, "%s/files", folder->path), .to = to};
    *files_r = walk.files;
    if (backup_folder_is_empty(walk.from))
        return true;
    if (!backup_files_owner_of(to, &walk.owner))
        return false;
    bool is_done = take_folder(&walk, DATABASES, walk.from, walk.to, NULL);
    *files_r = walk.files;
    return is_done;
}
