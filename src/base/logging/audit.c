/* audit: a line is appended under a lock of the file, which whoever renames it holds too. */
#include "base/logging/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/logging/log_json.h"

enum { MEMBERS = 6, MINUTE_MS = 60000, OPENED_MOST = 3 };

/* --- the share of strangers --- */

static struct {
    int64_t until_ms, count;
    unsigned long long unrecorded;
} strangers;

static bool may_record(const struct settings *settings)
{
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms >= strangers.until_ms) {
        strangers.until_ms = now_ms + MINUTE_MS;
        strangers.count = 0;
    }
    bool may = strangers.count < settings->audit_refused;
    strangers.count += may;
    strangers.unrecorded += !may;
    return may;
}

/* --- the file --- */

/* A file that root makes belongs to the owner of its folder, so that the server may write to it. */
static int create(const char *path)
{
    char folder[PATH_MAX];
    struct stat status;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    if (fd >= 0 && geteuid() == 0 && (stat(folder, &status) || fchown(fd, status.st_uid, status.st_gid)))
        log_warning("audit_file = %s: its owner cannot be set: %m", path);
    return fd;
}

/* Nobody is waited for: without the lock the file is as it is, and whoever has it renames it. */
static bool audit_is_full(const struct settings *settings, int fd, const struct stat *status)
{
    struct stat named;
    return status->st_size >= settings->audit_mb << 20 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
           stat(settings->audit_file, &named) == 0 && named.st_ino == status->st_ino &&
           named.st_dev == status->st_dev;
}

static int audit_open(const struct settings *settings)
{
    char former[PATH_MAX];
    struct stat status;
    const char *path = settings->audit_file;
    snprintf(former, sizeof former, "%s.1", path);
    for (int i = 0; i < OPENED_MOST; i++) {
        int fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            fd = create(path);
        if (fd < 0 && errno == EEXIST) /* another process has made it */
            continue;
        if (fd < 0 || fstat(fd, &status))
            return fd;
        if (!S_ISREG(status.st_mode)) {
            close(fd);
            errno = EINVAL;
            return -1;
        }
        if (!audit_is_full(settings, fd, &status) || rename(path, former))
            return fd;
        close(fd);
    }
    errno = EBUSY;
    return -1;
}

static bool audit_append(const struct settings *settings, char *line, size_t size)
{
    int fd = audit_open(settings);
    line[size++] = '\n';
    bool is_written = fd >= 0 && write(fd, line, size) == (ssize_t)size;
    if (!is_written)
        log_often(LOG_LEVEL_ERROR, "audit", "audit_file = %s: %m", settings->audit_file);
    if (fd >= 0)
        close(fd);
    return is_written;
}

void audit_note(const struct settings *settings, const struct audit_event *event)
{
    char line[LOG_JSON_BYTES + 1], unrecorded[24];
    if (event->is_of_stranger && !may_record(settings))
        return;
    snprintf(unrecorded, sizeof unrecorded, "%llu", strangers.unrecorded);
    const struct log_member members[MEMBERS] = {
        {"who", event->who},         {"operation", event->operation},
        {"ns", event->ns},           {"target", event->target},
        {"outcome", event->outcome}, {"unrecorded", strangers.unrecorded ? bytes_of(unrecorded) : NO_BYTES}};
    strangers.unrecorded = 0;
    if (*settings->audit_file && audit_append(settings, line, log_compose(line, "audit", members, MEMBERS)))
        return;
    char text[LOG_JSON_BYTES];
    size_t used = 0;
    for (size_t i = 0; i < MEMBERS; i++)
        if (members[i].text.data && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, " %s=%.*s", members[i].name,
                                     (int)members[i].text.size, members[i].text.data);
    log_info("audit%.*s", (int)strnlen(text, sizeof text), used ? text : "");
}
