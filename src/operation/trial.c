/* trial: the checks that read files run in a child, as the user of the server, which must be able to read
 * them. */
#include "operation/trial.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/identity.h"
#include "base/log.h"
#include "base/secret.h"
#include "model/cron.h"
#include "edge/crypto.h"
#include "operation/module/module.h"
#include "operation/push/push_key.h"

enum {
    LINE_BYTES = 1200,
    PROBLEM_BYTES = 600,
    MODULE_SECONDS = 20, /* for a module whose start does not end */
};

struct trial {
    const struct settings *settings;
    bool with_modules;
    trial_listener *tell;
    void *context;
    bool is_good;
};

static void tell(struct trial *trial, enum trial_level level, const char *format, ...) PRINTF_LIKE(3, 4);
static void tell(struct trial *trial, enum trial_level level, const char *format, ...)
{
    char text[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    trial->is_good = trial->is_good && level != TRIAL_WRONG;
    trial->tell(trial->context, level, text);
}

/* --- names --- */

static void try_names(struct trial *trial)
{
    const struct settings *settings = trial->settings;
    char problem[PROBLEM_BYTES];
    if (*settings->user) {
        bool is_user = identity_find_user(settings, problem, sizeof problem) != NULL;
        tell(trial, is_user ? TRIAL_GOOD : TRIAL_WRONG, is_user ? "user = %s" : "%s",
             is_user ? settings->user : problem);
    } else if (geteuid() == 0) {
        tell(trial, TRIAL_WARNING,
             "user is not set: started as root the server refuses, a unit must name its User");
    }
    if (*settings->socket_group) {
        bool is_group = getgrnam(settings->socket_group) != NULL;
        tell(trial, is_group ? TRIAL_GOOD : TRIAL_WRONG, "socket_group = %s%s", settings->socket_group,
             is_group ? "" : ": there is no such group");
    }
    if (strcmp(settings->zone, "UTC") != 0) {
        bool is_zone = cron_set_zone(settings->zone);
        tell(trial, is_zone ? TRIAL_GOOD : TRIAL_WRONG, "zone = %s%s", settings->zone,
             is_zone ? "" : ": there is no such time zone");
    }
}

/* --- secrets --- */

static bool has_password(const char *conninfo)
{
    const char *uri = strstr(conninfo, "://");
    const char *at = uri ? strchr(uri + 3, '@') : NULL;
    return strstr(conninfo, "password") != NULL || (at && memchr(uri + 3, ':', (size_t)(at - uri - 3)));
}

static void try_settings_file(struct trial *trial, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    if (status.st_mode & S_IWOTH)
        tell(trial, TRIAL_WRONG, "%s: any user may write it (mode %03o)", path,
             (unsigned)status.st_mode & 0777);
    else if (has_password(trial->settings->database) && (status.st_mode & S_IROTH))
        tell(trial, TRIAL_WRONG, "%s: holds a password, and any user may read it (mode %03o): chmod 640",
             path, (unsigned)status.st_mode & 0777);
}

static void try_secret(struct trial *trial, const char *setting, const char *path)
{
    struct secret secret;
    char problem[PROBLEM_BYTES];
    if (!*path)
        return;
    bool is_good = secret_read(&secret, setting, path, problem, sizeof problem);
    if (is_good && strcmp(setting, "queue_key_file") == 0 && *trial->settings->queue_key_sha256) {
        char digest[CRYPTO_SHA256_HEX + 1];
        crypto_sha256_hex(bytes_of(secret.text), digest);
        is_good = strcmp(digest, trial->settings->queue_key_sha256) == 0;
        snprintf(problem, sizeof problem,
                 "queue_key_file = %s: queue_key_sha256 is the digest of another key", path);
    }
    secret_erase(&secret);
    if (is_good)
        tell(trial, TRIAL_GOOD, "%s = %s", setting, path);
    else
        tell(trial, TRIAL_WRONG, "%s", problem);
}

static void try_push_key(struct trial *trial)
{
    const char *path = trial->settings->push_key_file;
    struct curve_key key;
    char problem[PROBLEM_BYTES];
    struct stat status;
    if (!*path)
        return;
    bool is_good = push_key_read(path, &key, problem, sizeof problem);
    explicit_bzero(&key, sizeof key);
    if (is_good && stat(path, &status) == 0 && (status.st_mode & (S_IROTH | S_IWOTH))) {
        is_good = false;
        snprintf(problem, sizeof problem, "push_key_file = %s: any user may read or write it", path);
    }
    tell(trial, is_good ? TRIAL_GOOD : TRIAL_WRONG, "%s%s", is_good ? "push_key_file = " : problem,
         is_good ? path : "");
}

static void try_file(struct trial *trial, const char *setting, const char *path)
{
    if (*path)
        tell(trial, access(path, R_OK) == 0 ? TRIAL_GOOD : TRIAL_WRONG, "%s = %s%s", setting, path,
             access(path, R_OK) == 0 ? "" : ": cannot be read");
}

/* stamp-queue reads these two before it gives up root, if it is started as root. */
static void try_secrets(struct trial *trial)
{
    try_secret(trial, "queue_key_file", trial->settings->queue_key_file);
    try_secret(trial, "mail_password_file", trial->settings->mail_password_file);
}

static void try_owner(struct trial *trial, const char *setting, const char *path)
{
    if (*path && access(path, R_OK) != 0 && errno == EACCES)
        tell(trial, TRIAL_WARNING,
             "%s = %s: this user cannot read it: stamp-queue will not start but as root", setting, path);
}

static void try_files(struct trial *trial)
{
    const struct settings *settings = trial->settings;
    try_owner(trial, "queue_key_file", settings->queue_key_file);
    try_owner(trial, "mail_password_file", settings->mail_password_file);
    try_push_key(trial);
    try_file(trial, "queue_ca_file", settings->queue_ca_file);
    try_file(trial, "mail_ca_file", settings->mail_ca_file);
}

/* --- modules --- */

static void try_modules(struct trial *trial)
{
    char problem[PROBLEM_BYTES] = "";
    if (!trial->with_modules || !*trial->settings->modules)
        return;
    if (geteuid() == 0) {
        tell(trial, TRIAL_WARNING,
             "modules: not tried as root; with the setting user they would be, as that user");
        return;
    }
    alarm(MODULE_SECONDS);
    bool is_loaded = module_load_all(trial->settings, problem, sizeof problem);
    alarm(0);
    tell(trial, is_loaded ? TRIAL_GOOD : TRIAL_WRONG, is_loaded ? "modules = %s" : "%s",
         is_loaded ? trial->settings->modules : problem);
}

/* --- the child --- */

static void write_line(void *context, enum trial_level level, const char *text)
{
    dprintf(*(int *)context, "%d%s\n", (int)level, text);
}

static void become_user(struct trial *trial)
{
    char problem[PROBLEM_BYTES];
    const struct passwd *user = geteuid() == 0 && *trial->settings->user
                                    ? identity_find_user(trial->settings, problem, sizeof problem)
                                    : NULL;
    if (user && (initgroups(user->pw_name, user->pw_gid) || setgid(user->pw_gid) || setuid(user->pw_uid)))
        tell(trial, TRIAL_WRONG, "user = %s: cannot become it: %m", user->pw_name);
}

static void NORETURN run_child(const struct trial *parent, int out)
{
    struct trial trial = *parent;
    trial.tell = write_line;
    trial.context = &out;
    log_set_level(LOG_LEVEL_ERROR);
    become_user(&trial);
    try_files(&trial);
    try_modules(&trial);
    _exit(0);
}

static void hear_child(struct trial *trial, FILE *in)
{
    char line[LINE_BYTES + 8];
    while (fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line >= '0' && *line <= '2')
            tell(trial, (enum trial_level)(*line - '0'), "%s", line + 1);
    }
}

static void try_as_user(struct trial *trial)
{
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        log_fatal("cannot make a pipe: %m");
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        log_fatal("cannot start a process: %m");
    if (pid == 0) {
        close(ends[0]);
        run_child(trial, ends[1]);
    }
    close(ends[1]);
    FILE *in = fdopen(ends[0], "r");
    if (!in)
        log_fatal("out of memory");
    hear_child(trial, in);
    fclose(in);
    if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
        tell(trial, TRIAL_WRONG, "modules = %s: loading them ended the process by signal %d (%s)",
             trial->settings->modules, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        tell(trial, TRIAL_WRONG, "modules = %s: loading them ended the process with status %d",
             trial->settings->modules, WEXITSTATUS(status));
}

bool trial_run(const struct settings *settings, const char *path, bool with_modules, trial_listener *listener,
               void *context)
{
    struct trial trial = {settings, with_modules, listener, context, true};
    try_settings_file(&trial, path);
    try_names(&trial);
    try_secrets(&trial);
    try_as_user(&trial);
    return trial.is_good;
}
