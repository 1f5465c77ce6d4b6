/* backup_folder: what is written belongs to the owner of the folder. */
#include "control/backup/backup_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/message.h"
#include "edge/json/json.h"

static bool backup_folder_fail(const char *path)
{
    return message_refuse("%s: %s", path, strerror(errno));
}

/* The path stands in a line that a shell reads (cmd_restore.c). */
static bool is_plain(const char *path)
{
    return path[strspn(path, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-")] == '\0';
}

bool backup_folder_open(struct control *control, const char *path, struct backup_folder *folder_r)
{
    struct stat status;
    char *whole = realpath(path, NULL);
    if (!whole)
        return backup_folder_fail(path);
    folder_r->path = arena_copy(control->arena, whole, strlen(whole));
    free(whole);
    if (stat(folder_r->path, &status) != 0)
        return backup_folder_fail(path);
    const struct passwd *owner = S_ISDIR(status.st_mode) ? getpwuid(status.st_uid) : NULL;
    if (!owner || owner->pw_uid == 0 || status.st_mode & (S_IRWXG | S_IRWXO))
        return message_refuse("%s: expected the folder of a backup, which belongs to the system user of "
                              "PostgreSQL and is closed to all others (install -d -m 700 -o postgres %s)",
                              path, path);
    if (!is_plain(folder_r->path))
        return message_refuse("%s: expected a path of letters, digits, and / . _ -", path);
    folder_r->user = arena_copy(control->arena, owner->pw_name, strlen(owner->pw_name));
    return geteuid() == 0 || geteuid() == owner->pw_uid ||
           message_refuse("run this command as root, or as %s", folder_r->user);
}

/* The file belongs to the owner of the folder.  No name is followed elsewhere: that user may do less than
 * ours. */
static int make_own(const struct backup_folder *folder, const char *path, int flags)
{
    const struct passwd *owner = getpwnam(folder->user);
    int fd = open(path, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || geteuid() != 0 || (owner && fchown(fd, owner->pw_uid, owner->pw_gid) == 0))
        return fd;
    close(fd);
    return -1;
}

int backup_folder_lock(struct control *control, const struct backup_folder *folder, const char *name,
                       bool is_waiting)
{
    const char *path = arena_printf(control->arena, "%s/%s", folder->path, name);
    int fd = make_own(folder, path, O_RDWR);
    if (fd < 0)
        return message_end(-1, "%s: %s", path, strerror(errno));
    if (flock(fd, is_waiting ? LOCK_EX : LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return message_end(-1, "%s: another stampctl is at work there", folder->path);
}

bool backup_folder_make(const struct backup_folder *folder, const char *path)
{
    const struct passwd *owner = getpwnam(folder->user);
    if (mkdir(path, 0700) != 0)
        return errno == EEXIST || backup_folder_fail(path);
    return geteuid() != 0 || (owner && lchown(path, owner->pw_uid, owner->pw_gid) == 0) ||
           backup_folder_fail(path);
}

bool backup_folder_is_empty(const char *path)
{
    DIR *directory = opendir(path);
    bool is_empty = directory || errno == ENOENT;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, "lost+found") != 0)
            is_empty = false;
    if (directory)
        closedir(directory);
    return is_empty;
}

/* --- objects.json --- */

static const char *path_of_objects(struct control *control, const struct backup_folder *folder)
{
    return arena_printf(control->arena, "%s/objects.json", folder->path);
}

bool backup_folder_note_objects(struct control *control, const struct backup_folder *folder, int64_t before)
{
    const char *path = path_of_objects(control, folder),
               *draft = arena_printf(control->arena, "%s.new", path);
    if (unlink(draft) != 0 && errno != ENOENT)
        return backup_folder_fail(draft);
    int fd = make_own(folder, draft, O_WRONLY | O_EXCL);
    const char *text = arena_printf(control->arena, "{\"before\":%lld}\n", (long long)before);
    bool is_written = fd >= 0 && bytes_write(fd, bytes_of(text)) && fsync(fd) == 0;
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return (is_written && rename(draft, path) == 0) || backup_folder_fail(path);
}

bool backup_folder_has_objects(struct control *control, const struct backup_folder *folder)
{
    return access(path_of_objects(control, folder), F_OK) == 0;
}

bool backup_folder_read_objects(struct control *control, const struct backup_folder *folder,
                                int64_t *before_r)
{
    struct json *object;
    struct bytes text;
    const char *path = path_of_objects(control, folder);
    *before_r = -1;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return true;
    if (!control_read_file(control->arena, path, &text))
        return false;
    if (!json_is_tree(control->arena, text, 2, 2, &object))
        return message_refuse("%s: expected a JSON object as stampctl has written it", path);
    *before_r = json_i64_of(object, "before", -1);
    return true;
}
