/* backup_files: walks STORE/database/shelf/digest; whatever has another name is not a finished file. */
#include "control/backup/backup_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/message.h"
#include "model/namespace.h"

enum { SHELF_NAME = 2, DIGEST_NAME = 64, PATH_MOST = 4096, PIECE = 1 << 20 };

static bool fail(const char *path)
{
    message_print("%s: %s", path, strerror(errno));
    return false;
}

static bool is_hex(const char *name, size_t size)
{
    return strlen(name) == size && strspn(name, "0123456789abcdef") == size;
}

struct files_walk {
    const char *from, *to; /* `to` NULL: nothing is copied */
    uid_t owner;
    gid_t group;
    mode_t folder_mode, file_mode;
    int64_t before_s;
    struct backup_files files;
    int64_t removed;
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

/* The copy appears under its name whole and durable, or not at all. */
static bool copy_file(const struct files_walk *walk, const char *from, const char *to, int64_t size)
{
    char draft[PATH_MOST];
    if (snprintf(draft, sizeof draft, "%s.new", to) >= (int)sizeof draft)
        return fail(to);
    int source = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (source < 0)
        return errno == ENOENT || fail(from); /* the cleaner of the store has removed it */
    int target = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat status;
    bool is_copied =
        target >= 0 && (copy_bytes(source, target) || (is_other_way() && copy_pieces(source, target))) &&
        fstat(target, &status) == 0 && status.st_size == size && fchmod(target, walk->file_mode) == 0 &&
        (geteuid() != 0 || fchown(target, walk->owner, walk->group) == 0) && fsync(target) == 0;
    int why = errno;
    if (target >= 0)
        close(target);
    close(source);
    if (is_copied && rename(draft, to) == 0)
        return true;
    if (is_copied)
        why = errno;
    unlink(draft);
    errno = why;
    return fail(to);
}

static bool take_file(struct files_walk *walk, const char *from, const char *to)
{
    struct stat source, target;
    if (lstat(from, &source) != 0 || !S_ISREG(source.st_mode))
        return true;
    if (!walk->to) {
        if (source.st_mtime >= walk->before_s)
            return true;
        walk->removed++;
        return unlink(from) == 0 || fail(from);
    }
    if (lstat(to, &target) == 0 && S_ISREG(target.st_mode) && target.st_size == source.st_size)
        return utimensat(AT_FDCWD, to, NULL, AT_SYMLINK_NOFOLLOW) == 0 || fail(to);
    walk->files.count++;
    walk->files.bytes += source.st_size;
    return copy_file(walk, from, to, source.st_size);
}

/* --- folders --- */

static bool make_folder(const struct files_walk *walk, const char *path)
{
    if (mkdir(path, 0700) != 0)
        return errno == EEXIST || fail(path);
    return (chmod(path, walk->folder_mode) == 0 &&
            (geteuid() != 0 || lchown(path, walk->owner, walk->group) == 0)) ||
           fail(path);
}

/* A renamed file is durable when its folder is. */
static bool sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return is_synced || fail(path);
}

enum level { DATABASES, SHELVES, FILES };

static bool is_part(enum level level, const char *name)
{
    return level == DATABASES ? namespace_is_database(name)
           : level == SHELVES ? is_hex(name, SHELF_NAME)
                              : is_hex(name, DIGEST_NAME);
}

static bool take_folder(struct files_walk *walk, enum level level, const char *from, const char *to)
{
    DIR *directory = opendir(from);
    if (!directory)
        return (level == DATABASES && errno == ENOENT) || fail(from);
    bool is_done = !walk->to || level == DATABASES || make_folder(walk, to);
    char inner_from[PATH_MOST], inner_to[PATH_MOST];
    int64_t copied = walk->files.count;
    for (struct dirent *entry; is_done && (entry = readdir(directory));) {
        if (!is_part(level, entry->d_name))
            continue;
        int a = snprintf(inner_from, sizeof inner_from, "%s/%s", from, entry->d_name);
        int b = snprintf(inner_to, sizeof inner_to, "%s/%s", to ? to : "", entry->d_name);
        errno = ENAMETOOLONG;
        is_done = (a < PATH_MOST && b < PATH_MOST) || fail(from);
        if (is_done)
            is_done = level == FILES ? take_file(walk, inner_from, inner_to)
                                     : take_folder(walk, level + 1, inner_from, inner_to);
    }
    closedir(directory);
    return is_done && (!walk->to || copied == walk->files.count || sync_folder(to));
}

/* --- the three ways --- */

bool backup_files_save(struct control *control, const struct backup_folder *folder, const char *from,
                       struct backup_files *files_r)
{
    const struct passwd *user = getpwnam(folder->user);
    struct files_walk walk = {.from = from,
                              .to = arena_printf(control->arena, "%s/files", folder->path),
                              .owner = user ? user->pw_uid : geteuid(),
                              .group = user ? user->pw_gid : getegid(),
                              .folder_mode = 0700,
                              .file_mode = 0600};
    bool is_done = take_folder(&walk, DATABASES, walk.from, walk.to);
    *files_r = walk.files;
    return is_done;
}

bool backup_files_prune(struct control *control, const struct backup_folder *folder, int64_t before_s,
                        int64_t *removed_r)
{
    struct files_walk walk = {.from = arena_printf(control->arena, "%s/files", folder->path),
                              .before_s = before_s};
    bool is_done = take_folder(&walk, DATABASES, walk.from, NULL);
    *removed_r = walk.removed;
    return is_done;
}

bool backup_files_restore(struct control *control, const struct backup_folder *folder, const char *to,
                          struct backup_files *files_r)
{
    struct stat status;
    const char *from = arena_printf(control->arena, "%s/files", folder->path);
    struct files_walk walk = {.from = from, .to = to, .folder_mode = 0750, .file_mode = 0440};
    *files_r = walk.files;
    if (backup_folder_is_empty(from))
        return true;
    if (stat(to, &status) != 0)
        return fail(to);
    walk.owner = status.st_uid;
    walk.group = status.st_gid;
    bool is_done = take_folder(&walk, DATABASES, walk.from, walk.to);
    *files_r = walk.files;
    return is_done;
}
