/* settings_check: the checks that read files run in a child, as the user of the server, which must be able to
 * read them. */
#include "operation/settings_check.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/identity.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/process/subprocess.h"
#include "model/task/cron.h"
#include "edge/crypto/crypto.h"
#include "seal/site_key.h"
#include "operation/module/module.h"
#include "operation/push/push_send.h"

enum {
    LINE_BYTES = 1200,
    PROBLEM_BYTES = 600,
    MODULE_SECONDS = 20, /* for a module whose start does not end */
};

struct settings_check {
    const struct settings *settings;
    bool with_modules;
    settings_check_listener *report;
    void *context;
    bool is_good;
};

static void settings_check_report(struct settings_check *check, enum settings_check_level level,
                                  const char *format, ...) PRINTF_LIKE(3, 4);
static void settings_check_report(struct settings_check *check, enum settings_check_level level,
                                  const char *format, ...)
{
    char text[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    check->is_good = check->is_good && level != SETTINGS_CHECK_WRONG;
    check->report(check->context, level, text);
}

/* --- names --- */

static void check_names(struct settings_check *check)
{
    const struct settings *settings = check->settings;
    char problem[PROBLEM_BYTES];
    if (*settings->user) {
        bool is_user = identity_find_user(settings, problem, sizeof problem) != NULL;
        settings_check_report(check, is_user ? SETTINGS_CHECK_GOOD : SETTINGS_CHECK_WRONG,
                              is_user ? "user = %s" : "%s", is_user ? settings->user : problem);
    } else if (geteuid() == 0) {
        settings_check_report(
            check, SETTINGS_CHECK_WARNING,
            "user is not set: started as root the server refuses, a unit must name its User");
    }
    if (*settings->socket_group) {
        bool is_group = getgrnam(settings->socket_group) != NULL;
        settings_check_report(check, is_group ? SETTINGS_CHECK_GOOD : SETTINGS_CHECK_WRONG,
                              "socket_group = %s%s", settings->socket_group,
                              is_group ? "" : ": there is no such group");
    } else {
        settings_check_report(check, SETTINGS_CHECK_WARNING,
                              "socket_group is empty: only the user of stampd may connect to the workers");
    }
    if (strcmp(settings->zone, "UTC") != 0) {
        bool is_zone = cron_set_zone(settings->zone);
        settings_check_report(check, is_zone ? SETTINGS_CHECK_GOOD : SETTINGS_CHECK_WRONG, "zone = %s%s",
                              settings->zone, is_zone ? "" : ": there is no such time zone");
    }
}

/* --- secrets --- */

static bool has_password(const char *conninfo)
{
    const char *uri = strstr(conninfo, "://");
    const char *at = uri ? strchr(uri + 3, '@') : NULL;
    return strstr(conninfo, "password") != NULL || (at && memchr(uri + 3, ':', (size_t)(at - uri - 3)));
}

static bool has_any_password(const struct settings *settings)
{
    bool has = has_password(settings->database);
    for (size_t i = 0; i < settings->cell_count; i++)
        has |= has_password(settings->cells[i].conninfo);
    return has;
}

static void check_settings_file(struct settings_check *check, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    if (status.st_mode & S_IWOTH)
        settings_check_report(check, SETTINGS_CHECK_WRONG, "%s: any user may write it (mode %03o)", path,
                              (unsigned)status.st_mode & 0777);
    else if (has_any_password(check->settings) && (status.st_mode & S_IROTH))
        settings_check_report(check, SETTINGS_CHECK_WRONG,
                              "%s: holds a password, and any user may read it (mode %03o): chmod 640", path,
                              (unsigned)status.st_mode & 0777);
}

static void check_secret(struct settings_check *check, const char *setting, const char *path)
{
    struct secret secret;
    char problem[PROBLEM_BYTES];
    if (!*path)
        return;
    bool is_good = secret_read(&secret, setting, path, problem, sizeof problem);
    if (is_good && strcmp(setting, "queue_key_file") == 0 && *check->settings->queue_key_sha256) {
        char digest[CRYPTO_SHA256_HEX + 1];
        crypto_sha256_hex(bytes_of(secret.text), digest);
        is_good = strcmp(digest, check->settings->queue_key_sha256) == 0;
        snprintf(problem, sizeof problem,
                 "queue_key_file = %s: queue_key_sha256 is the digest of another key", path);
    }
    secret_erase(&secret);
    if (is_good)
        settings_check_report(check, SETTINGS_CHECK_GOOD, "%s = %s", setting, path);
    else
        settings_check_report(check, SETTINGS_CHECK_WRONG, "%s", problem);
}

static void check_push_key(struct settings_check *check)
{
    const char *path = check->settings->push_key_file;
    struct curve_key key;
    char problem[PROBLEM_BYTES];
    if (!*path)
        return;
    bool is_good = push_key_read(path, &key, problem, sizeof problem) &&
                   secret_is_closed("push_key_file", path, problem, sizeof problem);
    explicit_bzero(&key, sizeof key);
    settings_check_report(check, is_good ? SETTINGS_CHECK_GOOD : SETTINGS_CHECK_WRONG, "%s%s",
                          is_good ? "push_key_file = " : problem, is_good ? path : "");
}

/* The server does not read it, so its user may lack access to the folder. */
static void check_object_stores(struct settings_check *check)
{
    const char *path = check->settings->object_stores_file;
    char problem[PROBLEM_BYTES];
    if (*path && access(path, F_OK) == 0 &&
        !secret_is_closed("object_stores_file", path, problem, sizeof problem))
        settings_check_report(check, SETTINGS_CHECK_WRONG, "%s", problem);
}

static void check_file(struct settings_check *check, const char *setting, const char *path)
{
    if (*path)
        settings_check_report(check, access(path, R_OK) == 0 ? SETTINGS_CHECK_GOOD : SETTINGS_CHECK_WRONG,
                              "%s = %s%s", setting, path, access(path, R_OK) == 0 ? "" : ": cannot be read");
}

/* stamp-queue reads these two before it gives up root, if it is started as root. */
static void check_secrets(struct settings_check *check)
{
    check_secret(check, "queue_key_file", check->settings->queue_key_file);
    check_secret(check, "mail_password_file", check->settings->mail_password_file);
}

static void check_owner(struct settings_check *check, const char *setting, const char *path)
{
    if (*path && access(path, R_OK) != 0 && errno == EACCES)
        settings_check_report(check, SETTINGS_CHECK_WARNING,
                              "%s = %s: this user cannot read it: stamp-queue will not start but as root",
                              setting, path);
}

static void settings_check_check_files(struct settings_check *check)
{
    const struct settings *settings = check->settings;
    check_owner(check, "queue_key_file", settings->queue_key_file);
    check_owner(check, "mail_password_file", settings->mail_password_file);
    check_push_key(check);
    check_object_stores(check);
    check_file(check, "queue_ca_file", settings->queue_ca_file);
    check_file(check, "mail_ca_file", settings->mail_ca_file);
}

/* --- modules --- */

static void check_modules(struct settings_check *check)
{
    char problem[PROBLEM_BYTES] = "";
    if (!check->with_modules || !*check->settings->modules)
        return;
    if (geteuid() == 0) {
        settings_check_report(
            check, SETTINGS_CHECK_WARNING,
            "modules: not tried as root; with the setting user they would be, as that user");
        return;
    }
    alarm(MODULE_SECONDS);
    bool is_loaded = module_load_all(check->settings, problem, sizeof problem);
    alarm(0);
    settings_check_report(check, is_loaded ? SETTINGS_CHECK_GOOD : SETTINGS_CHECK_WRONG,
                          is_loaded ? "modules = %s" : "%s", is_loaded ? check->settings->modules : problem);
}

/* --- the child --- */

static void write_line(void *context UNUSED, enum settings_check_level level, const char *text)
{
    printf("%d%s\n", (int)level, text);
    fflush(stdout);
}

static void become_user(struct settings_check *check)
{
    char problem[PROBLEM_BYTES];
    const struct passwd *user = geteuid() == 0 && *check->settings->user
                                    ? identity_find_user(check->settings, problem, sizeof problem)
                                    : NULL;
    if (user && (initgroups(user->pw_name, user->pw_gid) || setgid(user->pw_gid) || setuid(user->pw_uid)))
        settings_check_report(check, SETTINGS_CHECK_WRONG, "user = %s: cannot become it: %m", user->pw_name);
}

static int settings_check_run_child(const void *parent)
{
    struct settings_check check = *(const struct settings_check *)parent;
    check.report = write_line;
    log_set_level(LOG_LEVEL_ERROR);
    become_user(&check);
    settings_check_check_files(&check);
    check_modules(&check);
    return 0;
}

static void read_child(struct settings_check *check, FILE *in)
{
    char line[LINE_BYTES + 8];
    while (fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line >= '0' && *line <= '2')
            settings_check_report(check, (enum settings_check_level)(*line - '0'), "%s", line + 1);
    }
}

static void check_as_user(struct settings_check *check)
{
    const struct subprocess_work work = {.run = settings_check_run_child, .context = check, .has_out = true};
    struct subprocess child;
    FILE *in = subprocess_start(&work, &child) ? fdopen(child.out, "r") : NULL;
    if (!in)
        log_fatal("cannot start a process: %m");
    read_child(check, in);
    fclose(in);
    child.out = -1;
    const int status = subprocess_end(&child);
    if (status > SUBPROCESS_SIGNAL)
        settings_check_report(
            check, SETTINGS_CHECK_WRONG, "modules = %s: loading them ended the process by signal %d (%s)",
            check->settings->modules, status - SUBPROCESS_SIGNAL, strsignal(status - SUBPROCESS_SIGNAL));
    else if (status)
        settings_check_report(check, SETTINGS_CHECK_WRONG,
                              "modules = %s: loading them ended the process with status %d",
                              check->settings->modules, status);
}

bool settings_check_run(const struct settings *settings, const char *path, bool with_modules,
                        settings_check_listener *listener, void *context)
{
    struct settings_check check = {settings, with_modules, listener, context, true};
    char problem[PROBLEM_BYTES];
    check_settings_file(&check, path);
    check_names(&check);
    check_secrets(&check);
    if (!site_key_check_shared(settings, problem, sizeof problem))
        settings_check_report(&check, SETTINGS_CHECK_WRONG, "%s", problem);
    check_as_user(&check);
    return check.is_good;
}

static void print_finding(void *program, enum settings_check_level level, const char *text)
{
    if (level != SETTINGS_CHECK_GOOD)
        fprintf(stderr, "%s: %s%s\n", (const char *)program,
                level == SETTINGS_CHECK_WARNING ? "warning: " : "", text);
}

int settings_check_print(const struct settings *settings, const char *path, bool with_modules,
                         const char *program)
{
    bool is_good =
        settings_check_run(settings, path, with_modules, print_finding, (void *)(uintptr_t)program);
    if (is_good)
        printf("%s: the settings are good\n", path);
    return is_good ? 0 : 1;
}
