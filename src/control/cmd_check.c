/* cmd_check: `stampctl check-config`: checks that settings, databases, folders and nginx agree.  One line per
 * finding. */
#include "control/control.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/nginx/directive.h"
#include "control/folder_reach.h"
#include "control/ns/migrations.h"
#include "control/nginx/homes.h"
#include "control/nginx/map.h"
#include "control/ns/ns_keys.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"
#include "store/statements.h"
#include "edge/crypto/certificate.h"
#include "edge/mapping.h"
#include "operation/settings_check.h"

enum {
    READ_TIMEOUT_ABOVE_S =
        15, /* nginx must wait longer than an operation may take, retries and answer included */
    LINE_BYTES = 4096,
};

struct check {
    struct control *control;
    bool is_well, is_json;
    struct namespace_conf *confs;
    size_t count;
};

/* One line, of kind OK, WARN or FAIL. */
static void cmd_check_put(const struct check *check, const char *kind, const char *format, va_list arguments)
{
    struct record record = {0};
    char text[LINE_BYTES];
    vsnprintf(text, sizeof text, format, arguments);
    if (check->is_json) {
        record_add_word(&record, "result", kind);
        record_add_word(&record, "text", text);
        record_print(&record);
    } else {
        printf("%-4s  %s\n", kind, text);
    }
}

/* Something that may be intended. */
static void cmd_check_warn(const struct check *check, const char *format, ...) PRINTF_LIKE(2, 3);
static void cmd_check_warn(const struct check *check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    cmd_check_put(check, "WARN", format, arguments);
    va_end(arguments);
}

static bool cmd_check_find(struct check *check, bool is_well, const char *format, ...) PRINTF_LIKE(3, 4);
static bool cmd_check_find(struct check *check, bool is_well, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    cmd_check_put(check, is_well ? "OK" : "FAIL", format, arguments);
    va_end(arguments);
    check->is_well = check->is_well && is_well;
    return is_well;
}

/* --- the host --- */

static void check_folder(struct check *check)
{
    const struct settings *settings = &check->control->settings;
    const char *folder = settings->run_directory;
    struct stat status;
    struct sockaddr_un address;
    size_t longest = strlen(folder) + strlen("/worker-127.sock");
    bool is_there = stat(folder, &status) == 0;
    if (!is_there || !S_ISDIR(status.st_mode))
        cmd_check_find(check, false, "run_directory %s: %s", folder,
                       is_there ? "not a folder" : "there is none");
    else if (access(folder, W_OK | X_OK) != 0)
        cmd_check_find(check, false, "run_directory %s: not writable for this user", folder);
    else if (longest >= sizeof address.sun_path)
        cmd_check_find(check, false, "run_directory %s: too long for the address of a socket", folder);
    else
        cmd_check_find(check, true, "run_directory %s", folder);
    const char *path = arena_printf(check->control->arena, "%s/worker-0.sock", folder);
    if (stat(path, &status) == 0 && (status.st_mode & S_IWOTH))
        cmd_check_find(check, false, "%s: everybody may connect (mode %03o): socket_group names who may",
                       path, (unsigned)status.st_mode & 0777);
}

static void take_finding(void *context, enum settings_check_level level, const char *text)
{
    struct check *check = context;
    if (level == SETTINGS_CHECK_WARNING)
        cmd_check_warn(check, "%s", text);
    else
        cmd_check_find(check, level == SETTINGS_CHECK_GOOD, "%s", text);
}

/* Does a process listen at a socket's address? */
static bool is_heard(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_there =
        fd >= 0 && (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EACCES);
    if (fd >= 0)
        close(fd);
    return is_there;
}

/* Tasks, copies and push all need a queue manager. */
static void check_queue(struct check *check)
{
    const struct settings *settings = &check->control->settings;
    const char *endpoint =
        arena_printf(check->control->arena, "%s/%s.sock", settings->run_directory, settings->queue_code);
    if (!*settings->queue_key_sha256)
        cmd_check_warn(check,
                       "queue_key_sha256 is empty: no manager may start tasks; copies and push are tasks too "
                       "(stampctl key new --queue FILE)");
    else if (!is_heard(endpoint))
        cmd_check_warn(
            check,
            "%s: no queue manager of this host listens there; tasks wait unless one of another host starts "
            "them "
            "(systemctl start stamp-queue)",
            endpoint);
    else
        cmd_check_find(check, true, "queue manager %s", endpoint);
    if (*settings->queue_key_sha256 && strcmp(settings->queue_key_sha256, settings->admin_key_sha256) == 0)
        cmd_check_find(check, false, "queue_key_sha256 and admin_key_sha256 are of the same key");
    if (!*settings->mail_to)
        cmd_check_warn(check, "mail_to is empty: failing tasks are not reported");
}

/* --- databases --- */

static bool check_database(struct check *check, const char *code, const char *database, struct pg **pg_r)
{
    int number = 0;
    enum fault fault = control_connect_worker(check->control, database, pg_r);
    if (fault == FAULT_ODATABASE)
        return cmd_check_find(check, false, "namespace %s: the database %s does not exist", code, database);
    if (fault != FAULT_NONE)
        return cmd_check_find(check, false, "namespace %s: the database %s cannot be reached", code,
                              database);
    if (!migrations_applied(check->control, *pg_r, &number))
        return cmd_check_find(check, false, "namespace %s: the database %s cannot be read", code, database);
    if (number != SCHEMA_NUMBER)
        return cmd_check_find(check, false, "namespace %s: schema %d, this release needs %d%s%s", code,
                              number, SCHEMA_NUMBER, number < SCHEMA_NUMBER ? ": stampctl ns migrate " : "",
                              number < SCHEMA_NUMBER ? code : "");
    struct pg_result *row;
    if (!control_query(
            check->control, *pg_r, database,
            "select coalesce(nullif(current_setting('stampd.restored', true), '') <> restored, false)"
            " from namespace where one",
            NULL, &row))
        return cmd_check_find(check, false, "namespace %s: the database %s cannot be read", code, database);
    if (pg_get_bool(row, 0, 0))
        return cmd_check_find(
            check, false, "namespace %s: the database was restored from a backup: stampctl ns restored %s",
            code, code);
    struct data_keys *keys;
    if (!ns_keys_read(check->control, *pg_r, &keys))
        return cmd_check_find(
            check, false,
            "namespace %s: its data keys cannot be used: see site_key_file and site_key_command", code);
    return cmd_check_find(check, true, "namespace %s: database %s, schema %d%s", code, database, number,
                          keys->count ? ", encrypted" : "");
}

/* Each worker has a connection for each namespace that it serves. */
static void check_connections(struct check *check, struct pg *z)
{
    const struct settings *settings = &check->control->settings;
    struct pg_result *result;
    if (!control_query(check->control, z, "asking for max_connections",
                       "select current_setting('max_connections')::bigint - "
                       "current_setting('superuser_reserved_connections')::bigint",
                       NULL, &result)) {
        check->is_well = false;
        return;
    }
    int64_t namespaces =
        (int64_t)check->count < settings->connections ? (int64_t)check->count : settings->connections;
    int64_t wanted = settings->workers * namespaces, most = pg_get_i64(result, 0, 0);
    cmd_check_find(check, wanted <= most,
                   "connections: %lld workers with up to %lld each, PostgreSQL takes %lld",
                   (long long)settings->workers, (long long)namespaces, (long long)most);
}

static void check_databases(struct check *check)
{
    struct control *control = check->control;
    struct pg *z, *pg;
    if (!check_database(check, "z", control->settings.z_database, &z) ||
        !cmd_check_find(check, ns_registry_read(control, z, &check->confs, &check->count),
                        "configurations of the namespaces"))
        return;
    check_connections(check, z);
    for (size_t i = 0; i < check->count; i++)
        if (check->confs[i].is_malformed)
            cmd_check_find(check, false,
                           "namespace %s: its configuration is malformed (stampctl ns create %s mends it)",
                           check->confs[i].code, check->confs[i].code);
        else if (strcmp(check->confs[i].code, "z") != 0)
            check_database(check, check->confs[i].code, check->confs[i].database, &pg);
}

/* --- nginx --- */

/* The largest applies to bodies that a worker has checked, the others to those that it has not. */
static void check_body_size(struct check *check, struct bytes text)
{
    const struct settings *settings = &check->control->settings;
    int64_t limit = settings->limit_body_bytes, anonymous = settings_anonymous_body(settings);
    int64_t bytes, largest = -1, smallest = INT64_MAX;
    struct bytes value, large = {0}, small = {0};
    for (size_t position = 0; directive_next(text, "client_max_body_size", &position, &value);) {
        if (bytes_equal(value, BYTES("0"))) /* where no body is read */
            continue;
        if (!directive_bytes(value, &bytes)) {
            cmd_check_find(check, false, "nginx: client_max_body_size %.*s is not a size", (int)value.size,
                           value.data);
            return;
        }
        bool is_of_one_location = bytes == settings_live_body(settings) ||
                                  bytes == settings->limit_upload_bytes ||
                                  bytes == settings->limit_blob_bytes;
        if (is_of_one_location && bytes != limit)
            continue;
        if (bytes > largest) {
            largest = bytes;
            large = value;
        }
        if (bytes < smallest) {
            smallest = bytes;
            small = value;
        }
    }
    if (largest < 0)
        cmd_check_find(check, false, "nginx: client_max_body_size is not set");
    else if (largest != limit)
        cmd_check_find(check, false, "nginx: client_max_body_size %.*s, limit_body_bytes is %lld",
                       (int)large.size, large.data, (long long)limit);
    else if (smallest < anonymous)
        cmd_check_find(check, false, "nginx: client_max_body_size %.*s, limit_anonymous_body_bytes is %lld",
                       (int)small.size, small.data, (long long)anonymous);
    else
        cmd_check_find(check, true, "nginx: client_max_body_size");
}

static void check_read_timeout(struct check *check, struct bytes text)
{
    int64_t least = check->control->settings.limit_operation_s + READ_TIMEOUT_ABOVE_S, seconds;
    struct bytes value = BYTES("60");
    size_t position = 0;
    (void)directive_next(text, "fastcgi_read_timeout", &position, &value);
    cmd_check_find(check, directive_seconds(value, &seconds) && seconds >= least,
                   "nginx: fastcgi_read_timeout %.*s, at least %lld s are needed", (int)value.size,
                   value.data, (long long)least);
    /* Those that follow belong to addresses where tasks are run. */
    for (least = check->control->settings.limit_task_s + READ_TIMEOUT_ABOVE_S;
         directive_next(text, "fastcgi_read_timeout", &position, &value);)
        cmd_check_find(check, directive_seconds(value, &seconds) && seconds >= least,
                       "nginx: fastcgi_read_timeout %.*s of tasks, at least %lld s are needed",
                       (int)value.size, value.data, (long long)least);
}

static bool has_socket(const struct check *check, struct bytes text, int64_t worker)
{
    const char *socket = arena_printf(check->control->arena, "unix:%s/worker-%lld.sock",
                                      check->control->settings.run_directory, (long long)worker);
    struct bytes value;
    for (size_t position = 0; directive_next(text, "server", &position, &value);)
        if (bytes_has_prefix(value, bytes_of(socket)))
            return true;
    return false;
}

/* The lists have different workers: one that none of them has would be idle. */
static void check_sockets(struct check *check, struct bytes text)
{
    int64_t count = 0, workers = check->control->settings.workers;
    while (has_socket(check, text, count))
        count++;
    cmd_check_find(check, count == workers, "nginx: %lld sockets in run_directory, workers = %lld",
                   (long long)count, (long long)workers);
}

static void check_map(struct check *check, const char *map_file)
{
    struct bytes text;
    struct map_options options = {.path = map_file};
    const char *path = map_path(check->control, &options);
    if (!check->confs)
        return;
    bool is_read = control_read_file(check->control->arena, path, &text);
    cmd_check_find(
        check,
        is_read && bytes_equal(text, map_compose(check->control->arena, check->confs, check->count, NULL)),
        "nginx: %s holds all namespaces (stampctl ns map writes it)", path);
    path = homes_path(check->control->arena, path);
    is_read = control_read_file(check->control->arena, path, &text);
    cmd_check_find(check,
                   is_read &&
                       bytes_equal(text, homes_compose(check->control->arena, &check->control->settings,
                                                       check->confs, check->count, NULL)),
                   "nginx: %s is of these namespaces and settings (stampctl ns map writes it)", path);
}

/* The address of each directive `listen`: is one of them IPv6, and of the public endpoint? */
static void check_listen(struct check *check, struct bytes text)
{
    struct bytes value;
    bool has_six = false;
    for (size_t position = 0; directive_next(text, "listen", &position, &value);)
        has_six |=
            value.size > 1 && value.data[0] == '[' && (value.size < 5 || memcmp(value.data, "[::1]", 5) != 0);
    if (!has_six)
        cmd_check_warn(check, "nginx: it does not listen on IPv6 (stampctl nginx --listen [::]:443)");
}

static bool cmd_check_is_loopback(struct bytes value)
{
    static const struct bytes addresses[] = {BYTES("127."), BYTES("[::1]"), BYTES("localhost"),
                                             BYTES("unix:")};
    for (size_t i = 0; i < COUNT_OF(addresses); i++)
        if (value.size >= addresses[i].size && memcmp(value.data, addresses[i].data, addresses[i].size) == 0)
            return true;
    return false;
}

static bool has_word(struct check *check, struct bytes value, const char *word)
{
    return strstr(arena_copy(check->control->arena, value.data, value.size), word) != NULL;
}

/* A public server for HTTPS wants one for plain HTTP, which redirects to it and answers ACME, and HSTS. */
static void check_plain(struct check *check, struct bytes text)
{
    struct bytes value;
    bool has_tls = false, has_plain = false, has_hsts = false;
    for (size_t position = 0; directive_next(text, "listen", &position, &value);)
        if (has_word(check, value, " ssl"))
            has_tls = true;
        else
            has_plain |= !cmd_check_is_loopback(value);
    for (size_t position = 0; directive_next(text, "add_header", &position, &value);)
        has_hsts |= has_word(check, value, "Strict-Transport-Security");
    if (has_tls && !has_plain)
        cmd_check_warn(
            check,
            "nginx: it does not listen for plain HTTP: addresses without https:// fail, and ACME cannot "
            "renew a certificate (stampctl nginx --http 80 --acme FOLDER)");
    if (has_tls && !has_hsts)
        cmd_check_warn(check,
                       "nginx: no HSTS: browsers may be led to plain HTTP (stampctl nginx --hsts 31536000)");
}

static void check_access_log(struct check *check, struct bytes text)
{
    struct bytes value;
    size_t position = 0;
    if (directive_next(text, "access_log", &position, &value) && value.size >= 3 &&
        memcmp(value.data, "off", 3) == 0)
        cmd_check_warn(check, "nginx: access_log is off: requests leave no record");
}

enum { RENEWAL_DAYS = 14 };

static const char *first_word(struct check *check, struct bytes value)
{
    size_t size = 0;
    while (size < value.size && !strchr(" \t;", value.data[size]))
        size++;
    return arena_printf(check->control->arena, "%.*s", (int)size, value.data);
}

/* nginx writes the bodies of requests and answers to files: in memory they are another limit for what
 * strangers can fill. */
static void check_temporary(struct check *check, struct bytes text)
{
    struct bytes value;
    size_t position = 0;
    if (!directive_next(text, "client_body_temp_path", &position, &value))
        return;
    const char *folder = first_word(check, value); /* nginx makes it when it starts */
    if (mapping_is_in_memory(folder))
        cmd_check_warn(
            check,
            "nginx: its temporary files are in memory, in %s (stampctl nginx --folder FOLDER on a disk)",
            folder);
}

static void check_certificate(struct check *check, struct bytes text)
{
    struct bytes value, pem;
    struct stat status;
    int days;
    for (size_t position = 0; directive_next(text, "ssl_certificate", &position, &value);) {
        const char *path = first_word(check, value);
        if (!cmd_check_find(check,
                            control_read_file(check->control->arena, path, &pem) &&
                                certificate_days_left(pem, &days),
                            "nginx: certificate %s", path))
            continue;
        if (days < 0)
            cmd_check_find(check, false, "nginx: certificate %s has ended", path);
        else if (days < RENEWAL_DAYS)
            cmd_check_warn(check, "nginx: certificate %s ends in %d days", path, days);
    }
    for (size_t position = 0; directive_next(text, "ssl_certificate_key", &position, &value);) {
        const char *path = first_word(check, value);
        if (stat(path, &status) == 0 && (status.st_mode & (S_IROTH | S_IWOTH)))
            cmd_check_find(check, false, "nginx: any user may read or write the key %s (mode %03o)", path,
                           (unsigned)status.st_mode & 0777);
    }
}

/* Where nginx keeps copies of the files of namespaces; it makes the folder when it starts. */
static void check_copies(struct check *check, struct bytes text)
{
    int64_t most = check->control->settings.resource_cache_mb, bytes = 0;
    struct bytes value, size = BYTES("");
    size_t position = 0;
    if (!directive_next(text, "fastcgi_cache_path", &position, &value)) {
        cmd_check_find(check, false, "nginx: fastcgi_cache_path is not set (stampctl nginx writes it)");
        return;
    }
    const char *at = memmem(value.data, value.size, " max_size=", 10);
    if (at)
        size =
            bytes_of(first_word(check, (struct bytes){at + 10, value.size - (size_t)(at + 10 - value.data)}));
    cmd_check_find(check, directive_bytes(size, &bytes) && bytes == most << 20,
                   "nginx: copies of files in %s, max_size %s, resource_cache_mb is %lld",
                   first_word(check, value), size.size ? size.data : "none", (long long)most);
}

static bool is_in_group(const struct passwd *user, const struct group *group)
{
    bool is_member = user->pw_gid == group->gr_gid;
    for (char **name = group->gr_mem; !is_member && *name; name++)
        is_member = strcmp(*name, user->pw_name) == 0;
    return is_member;
}

/* nginx itself reads the files of attachments. */
static void cmd_check_check_files(struct check *check, const struct passwd *user, bool is_certain)
{
    const char *folder = check->control->settings.blob_directory;
    const char *obstacle = folder_reach_obstacle(check->control->arena, user, folder);
    if (!obstacle)
        return;
    if (is_certain)
        cmd_check_find(check, false,
                       "nginx: its user %s cannot enter %s: it cannot send the files in blob_directory = %s",
                       user->pw_name, obstacle, folder);
    else
        cmd_check_warn(
            check,
            "nginx: the user %s of /etc/nginx/nginx.conf cannot enter %s, on the way to the files in %s",
            user->pw_name, obstacle, folder);
}

/* The sockets of workers admit the members of socket_group.  If the file is a part of nginx's configuration,
 * the usual main one is asked, which may not be that of this nginx. */
static void check_user(struct check *check, struct bytes text)
{
    const char *of_sockets = check->control->settings.socket_group;
    struct bytes whole, value = {0};
    size_t position = 0;
    bool is_here = directive_next(text, "user", &position, &value);
    position = 0;
    bool is_named = is_here || (control_read_file(check->control->arena, "/etc/nginx/nginx.conf", &whole) &&
                                directive_next(whole, "user", &position, &value));
    if (!is_named || !*of_sockets)
        return;
    const char *name = first_word(check, value);
    const struct group *group = getgrnam(of_sockets);
    const struct passwd *user = getpwnam(name);
    bool is_member = user && group && (user->pw_uid == 0 || is_in_group(user, group));
    if (is_here || is_member)
        cmd_check_find(check, is_member, "nginx: its user %s is in socket_group %s", name, of_sockets);
    else
        cmd_check_warn(check, "nginx: the user %s of /etc/nginx/nginx.conf is not in socket_group %s", name,
                       of_sockets);
    if (user)
        cmd_check_check_files(check, user, is_here);
}

static void check_nginx(struct check *check, const char *path, const char *map_file)
{
    struct bytes text;
    if (!cmd_check_find(check, control_read_file(check->control->arena, path, &text), "nginx: %s", path))
        return;
    check_body_size(check, text);
    check_read_timeout(check, text);
    check_user(check, text);
    check_sockets(check, text);
    check_map(check, map_file);
    check_listen(check, text);
    check_plain(check, text);
    check_access_log(check, text);
    check_temporary(check, text);
    check_copies(check, text);
    check_certificate(check, text);
}

int control_check_config(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("check-config", "", "Check that settings, databases, folders and nginx agree.",
                "Run it as the user of stampd: it connects to PostgreSQL as the workers do.\n");
    const char *nginx = NULL, *map_file = NULL;
    struct check check = {.control = control, .is_well = true};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        RECORD_JSON_LINE(&check.is_json),
        OPTION_TEXT("nginx", "FILE", &nginx, "Check nginx's configuration too."),
        OPTION_TEXT("map", "FILE", &map_file,
                    "Read the map of namespaces from FILE (default: namespaces.map beside the settings)."),
    };
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!cmd_check_find(&check, control_load_settings(control), "settings %s", control->config))
        return CONTROL_FAILED;
    cmd_check_find(&check, true, "admin_key_sha256 %s",
                   *control->settings.admin_key_sha256 ? "is set" : "is empty: there is no administrator");
    check_folder(&check);
    check.is_well =
        settings_check_run(&control->settings, control->config, true, take_finding, &check) && check.is_well;
    check_queue(&check);
    check_databases(&check);
    if (nginx)
        check_nginx(&check, nginx, map_file);
    return check.is_well ? CONTROL_DONE : CONTROL_FAILED;
}
