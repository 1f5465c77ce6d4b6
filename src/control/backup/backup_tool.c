/* backup_tool: fork, change of user, exec; no shell. */
#include "control/backup/backup_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/message.h"
#include "edge/pg/pg.h"

enum { CANNOT_EXEC = 127, READ_BYTES = 65536 };

static const struct passwd *find_user(const char *user)
{
    errno = 0;
    const struct passwd *found = getpwnam(user);
    if (!found)
        message_print("there is no system user %s (adduser --system --group --no-create-home --home "
                      "/nonexistent %s), or choose another one: --user",
                      user, user);
    return found;
}

bool backup_tool_check_user(const char *user)
{
    const struct passwd *found = find_user(user);
    if (!found)
        return false;
    if (found->pw_uid == 0)
        return message_refuse(
            "the tools of PostgreSQL do not run as root: name another system user by --user");
    if (geteuid() == 0 || geteuid() == found->pw_uid)
        return true;
    return message_refuse("run this command as root, or as %s", user);
}

bool backup_tool_give(const char *user, const char *path)
{
    if (geteuid() != 0)
        return true;
    const struct passwd *found = find_user(user);
    if (!found)
        return false;
    if (lchown(path, found->pw_uid, found->pw_gid) == 0)
        return true;
    return message_refuse("%s: %s", path, strerror(errno));
}

const char *backup_tool_conninfo(struct control *control, const struct backup_folder *folder)
{
    static const char *const others[] = {"user", "password", "passfile", "dbname", NULL};
    const char *server = pg_conninfo_without(control->arena, control->settings.database, others);
    return arena_printf(control->arena, "%s user='%s'", server ? server : "", folder->role);
}

/* In the process of the tool. */
static void change_user(const char *user)
{
    const struct passwd *found = find_user(user);
    if (!found)
        _exit(CANNOT_EXEC);
    if (geteuid() == 0 &&
        (initgroups(user, found->pw_gid) != 0 || setgid(found->pw_gid) != 0 || setuid(found->pw_uid) != 0)) {
        message_print("cannot become the user %s: %s", user, strerror(errno));
        _exit(CANNOT_EXEC);
    }
    setenv("HOME", found->pw_dir, 1);
}

/* The tool prints times in UTC; its messages are those that the pages show. */
static void prepare_environment(void)
{
    setenv("TZ", "UTC", 1);
    setenv("LC_ALL", "C", 1);
    if (chdir("/") != 0)
        _exit(CANNOT_EXEC);
}

/* The tool ends when its parent does, so that an interrupted command leaves none behind. */
static void execute(struct control *control, const struct backup_folder *folder, const char *const *words,
                    pid_t parent)
{
    const char *path = arena_printf(control->arena, "%s/%s", folder->tools, words[0]);
    if (strchr(words[0], '/') || access(path, X_OK) != 0)
        path = words[0];
    if (folder->user)
        change_user(folder->user);
    prepare_environment();
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a change of user would undo it */
    if (getppid() != parent)
        _exit(CANNOT_EXEC);
    size_t count = 0;
    while (words[count])
        count++;
    char **arguments = arena_alloc(control->arena, (count + 1) * sizeof *arguments);
    memcpy(arguments, words, (count + 1) * sizeof *arguments);
    arguments[0] = (char *)(uintptr_t)path; /* PostgreSQL's tools search others beside themselves */
    execvp(path, arguments);
    message_print("%s: %s", path, strerror(errno));
}

static pid_t backup_tool_start(struct control *control, const struct backup_folder *folder,
                               const char *const *words, int output, bool is_quiet)
{
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(output >= 0 ? output : STDERR_FILENO, STDOUT_FILENO);
    if (is_quiet)
        dup2(null, STDERR_FILENO);
    execute(control, folder, words, parent);
    _exit(CANNOT_EXEC);
}

/* Passes whole lines on; the last one may lack its end. */
static void read_lines(int fd, void (*take)(void *context, struct bytes line), void *context)
{
    struct builder buffer = {0};
    for (;;) {
        ssize_t got = read(fd, builder_reserve(&buffer, READ_BYTES), READ_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        buffer.size += (size_t)got;
        struct bytes rest = builder_bytes(&buffer);
        while (memchr(rest.data, '\n', rest.size))
            take(context, bytes_cut(&rest, '\n'));
        memmove(buffer.data, rest.data, rest.size);
        buffer.size = rest.size;
    }
    if (buffer.size)
        take(context, builder_bytes(&buffer));
    builder_free(&buffer);
}

static bool backup_tool_end(pid_t pid, const char *name, bool *ok_r)
{
    int status;
    pid_t ended;
    do
        ended = waitpid(pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    bool is_exit = ended == pid && WIFEXITED(status), is_well = is_exit && WEXITSTATUS(status) == 0;
    if (ok_r) {
        *ok_r = is_well;
        is_well = is_exit && WEXITSTATUS(status) != CANNOT_EXEC;
    }
    if (!is_well && is_exit)
        message_print("%s failed with status %d", name, WEXITSTATUS(status));
    else if (!is_well)
        message_print("%s was ended by signal %d", name, ended == pid ? WTERMSIG(status) : 0);
    return is_well;
}

bool backup_tool_run(struct control *control, const struct backup_folder *folder, const char *const *words)
{
    pid_t pid = backup_tool_start(control, folder, words, -1, false);
    if (pid > 0)
        return backup_tool_end(pid, words[0], NULL);
    return message_refuse("%s: %s", words[0], strerror(errno));
}

bool backup_tool_read(struct control *control, const struct backup_folder *folder, const char *const *words,
                      void (*take)(void *context, struct bytes line), void *context, bool *ok_r)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return message_refuse("%s: %s", words[0], strerror(errno));
    pid_t pid = backup_tool_start(control, folder, words, ends[1], ok_r != NULL);
    close(ends[1]);
    if (pid > 0)
        read_lines(ends[0], take, context);
    else
        message_print("%s: %s", words[0], strerror(errno));
    close(ends[0]);
    return pid > 0 && backup_tool_end(pid, words[0], ok_r);
}
