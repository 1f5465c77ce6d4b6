/* records_use: what each namespace has of the memory; also for a process that only reads the file. */
#include "records/records_use.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "records/records_private.h"

static size_t records_use_collect(const struct records_head *head,
                                  struct records_use uses_r[RECORDS_SPACES_MOST])
{
    size_t count = 0;
    for (uint32_t i = 0; i < head->spaces && i < RECORDS_SPACES_MOST; i++) {
        const struct records_space *space = &head->space[i];
        struct records_use use = {.bytes = undo_long(space->bytes), .records = space->count};
        memcpy(use.ns, space->code, RECORDS_CODE_MOST);
        if (use.records && !space->is_hidden)
            uses_r[count++] = use;
    }
    return count;
}

size_t records_uses(struct records *records, struct records_use uses_r[RECORDS_SPACES_MOST])
{
    if (!records_enter(records))
        return 0;
    size_t count = records_use_collect(records->head, uses_r);
    records_leave(records);
    return count;
}

/* The numbers of the device as /proc/locks shows them: those of the mount.  fstat has others for some kinds
 * of file systems (btrfs, overlayfs).  False: not known. */
static bool find_device(int fd, unsigned *major_r, unsigned *minor_r)
{
    char path[40], line[4096]; /* of a longer line the end is read as a line, which has no numbers */
    unsigned long mount = 0, number;
    bool is_found = false;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *info = fopen(path, "re");
    while (info && !mount && fgets(line, sizeof line, info))
        if (sscanf(line, "mnt_id: %lu", &mount) != 1)
            mount = 0;
    if (info)
        fclose(info);
    FILE *mounts = mount ? fopen("/proc/self/mountinfo", "re") : NULL;
    while (mounts && !is_found && fgets(line, sizeof line, mounts)) /* "36 35 98:0 /root /mnt …" */
        is_found = sscanf(line, "%lu %*u %u:%u", &number, major_r, minor_r) == 3 && number == mount;
    if (mounts)
        fclose(mounts);
    return is_found;
}

bool records_use_is_lock(const char *line, const struct records_use_file *file)
{
    const char *place = strstr(line, " FLOCK ");
    unsigned major, minor;
    unsigned long long inode;
    if (!place || sscanf(place, " FLOCK %*s %*s %*d %x:%x:%llu", &major, &minor, &inode) != 3)
        return false;
    bool is_device = !file->has_device || (major == file->major && minor == file->minor);
    return is_device && inode == file->inode;
}

/* Whoever has the records open holds a lock on the file (edge/mapping.h).  To try a lock here would make a
 * server that starts at this moment believe that others use the file, and keep what is in it: the kernel's
 * list is read instead.  False: there is none. */
static bool find_users(int fd, bool *has_users_r)
{
    char line[200];
    struct stat status;
    FILE *locks = fopen("/proc/locks", "re");
    if (!locks)
        return false;
    *has_users_r = false;
    bool is_known = fstat(fd, &status) == 0;
    struct records_use_file file = {0};
    file.inode = is_known ? status.st_ino : 0;
    file.has_device = find_device(fd, &file.major, &file.minor);
    while (is_known && !*has_users_r && fgets(line, sizeof line, locks))
        *has_users_r = records_use_is_lock(line, &file);
    fclose(locks);
    return is_known;
}

static bool records_use_read_head(int fd, struct records_head *head)
{
    size_t size = offsetof(struct records_head, space) + sizeof head->space; /* nothing behind is needed */
    return pread(fd, head, size, 0) == (ssize_t)size && head->head.magic == RECORDS_MAGIC &&
           head->head.layout == RECORDS_LAYOUT;
}

bool records_use_peek(const char *path, struct records_head *head_r)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    head_r->is_ready = 0;
    if (fd < 0)
        return errno == ENOENT;
    bool has_users = false,
         is_known = find_users(fd, &has_users) && (!has_users || records_use_read_head(fd, head_r));
    close(fd);
    if (!is_known || !has_users)
        head_r->is_ready = 0;
    return is_known;
}

bool records_peek(const char *path, struct records_use uses_r[RECORDS_SPACES_MOST], size_t *count_r)
{
    static struct records_head head; /* too large for a stack */
    bool is_known = records_use_peek(path, &head);
    *count_r = head.is_ready ? records_use_collect(&head, uses_r) : 0;
    return is_known;
}
