/* control: settings, connections and files; each failure is reported in one line. */
#include "control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/message.h"
#include "base/log.h"
#include "edge/pg/pg.h"
#include "model/document/item.h"

enum {
    ADMIN_STATEMENT_MS = 6 * 3600 * 1000, /* a migration may rewrite a large table */
    ADMIN_LOCK_MS = 30 * 1000,            /* short, so that others do not queue behind its wait for a lock */
    FILE_MAX = 64 << 20,
};

bool control_load_settings(struct control *control)
{
    char problem[1024];
    if (control->has_settings)
        return true;
    if (!settings_load(&control->settings, control->config, problem, sizeof problem))
        return message_refuse("%s", problem);
    control->has_settings = true;
    return true;
}

char **control_begin(struct control *control, const struct command *command, const struct option_line *lines,
                     size_t line_count, int argc, char **argv)
{
    char **words = options_read(control, command, lines, line_count, argc, argv);
    if (!words || control_load_settings(control))
        return words;
    control->status = CONTROL_FAILED;
    return NULL;
}

/* --- PostgreSQL --- */

static void close_connection(void *pg)
{
    pg_close(pg);
}

static enum fault open_connection(struct control *control, const struct pg_options *options, struct pg **pg_r)
{
    log_set_level(LOG_LEVEL_WARNING); /* only its log line has the reason of a refused connection */
    enum fault fault = *options->database ? pg_open(options, pg_r) : FAULT_XAWAY;
    log_set_level(LOG_LEVEL_ERROR);
    if (!*options->database)
        message_print("the configuration of the namespace names no database");
    if (fault == FAULT_NONE)
        arena_defer(control->arena, close_connection, *pg_r);
    return fault;
}

/* The connection string of an administrator: that of the workers without who they are, or the given one, in
 * another cell with the address of that cell in place of its own.  NULL: reported. */
static const char *conninfo_of(struct control *control, const char *cell)
{
    static const char *const workers_own[] = {"user", "password", "passfile", "dbname", NULL};
    static const char *const place[] = {"host", "hostaddr", "port", "dbname", NULL};
    const char *given = control->admin_conninfo;
    const char *setting = settings_conninfo_of_cell(&control->settings, cell);
    if (!setting) {
        message_print("%s: there is no setting database.%s: the cell is not known", control->config, cell);
        return NULL;
    }
    if (given && !*cell)
        return given;
    const char *there = pg_conninfo_without(control->arena, setting, workers_own);
    const char *who = given ? pg_conninfo_without(control->arena, given, place) : "";
    if (!there)
        message_print("%s: setting database%s%s is no connection string", control->config, *cell ? "." : "",
                      cell);
    else if (!who)
        message_print("--admin-conninfo: expected a connection string");
    return there && who ? arena_printf(control->arena, "%s %s", there, who) : NULL;
}

const char *control_database_name(struct arena *arena, const char *database)
{
    return arena_copy(arena, database, strcspn(database, "@"));
}

enum fault control_connect(struct control *control, const char *database, struct pg **pg_r)
{
    const char *conninfo = conninfo_of(control, settings_cell_of(database));
    if (!conninfo)
        return FAULT_AARG;
    struct pg_options options = {.conninfo = conninfo,
                                 .database = database,
                                 .role_settings = "-c search_path=stampd",
                                 .connect_timeout_s = (int)control->settings.connect_timeout_s,
                                 .statement_timeout_ms = ADMIN_STATEMENT_MS,
                                 .lock_timeout_ms = ADMIN_LOCK_MS};
    return open_connection(control, &options, pg_r);
}

enum fault control_connect_worker(struct control *control, const char *database, struct pg **pg_r)
{
    struct pg_options options = {.conninfo = settings_conninfo(&control->settings, database),
                                 .database = database,
                                 .role_settings = "-c search_path=stampd",
                                 .connect_timeout_s = (int)control->settings.connect_timeout_s,
                                 .statement_timeout_ms = control->settings.statement_timeout_ms,
                                 .lock_timeout_ms = control->settings.lock_timeout_ms};
    enum fault fault = open_connection(control, &options, pg_r);
    if (fault == FAULT_XAWAY && geteuid() == 0)
        message_print(
            "this command connects as the workers do, as the role %s: run it as the user of stampd, "
            "runuser -u stampd -- stampctl ...",
            control_worker_role(control, database));
    return fault;
}

const char *control_worker_role(struct control *control, const char *database)
{
    const char *conninfo = settings_conninfo(&control->settings, database);
    const char *user = conninfo ? pg_conninfo_value(control->arena, conninfo, "user") : NULL;
    return user ? user : "stampd";
}

static void control_explain(struct pg *pg, const char *what)
{
    const char *message = pg_message(pg);
    message_print("%s: %.*s", what, (int)strcspn(message, "\n"), message);
}

bool control_query(struct control *control, struct pg *pg, const char *what, const char *sql,
                   const struct pg_params *params, struct pg_result **result_r)
{
    static int number;
    if (!params) {
        params = PG_NO_PARAMS(control->arena);
    }
    struct pg_statement *statement = ARENA_NEW(control->arena, struct pg_statement);
    *statement =
        (struct pg_statement){arena_printf(control->arena, "control_%d", ++number), sql, params->count};
    if (pg_prepare(pg, statement, 1) == FAULT_NONE && pg_run(pg, statement, params, result_r) == FAULT_NONE)
        return true;
    control_explain(pg, what);
    return false;
}

bool control_execute(struct pg *pg, const char *what, const char *sql)
{
    if (pg_execute(pg, sql) == FAULT_NONE)
        return true;
    control_explain(pg, what);
    return false;
}

/* --- files --- */

/* The folder `name` of the build tree when the program is TREE/src/stampctl, else NULL. */
static const char *build_tree(struct arena *arena, const char *name)
{
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size <= 0)
        return NULL;
    path[size] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    slash = strrchr(path, '/');
    if (!slash || strcmp(slash, "/src") != 0)
        return NULL;
    *slash = '\0';
    static const char *const sources[] = {"/source", ""}; /* configure's link, when they are elsewhere */
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        const char *folder = arena_printf(arena, "%s%s/%s", path, sources[i], name);
        struct stat status;
        if (stat(folder, &status) == 0 && S_ISDIR(status.st_mode))
            return folder;
    }
    return NULL;
}

bool control_check_class(const char *command, const char *class)
{
    if (item_is_class_name(bytes_of(class)))
        return true;
    return message_refuse("%s: --class %s: expected a capital, then up to 15 letters and digits", command,
                          class);
}

const char *control_directory(struct arena *arena, const char *variable, const char *name,
                              const char *installed)
{
    const char *folder = getenv(variable);
    if (folder && *folder)
        return folder;
    folder = build_tree(arena, name);
    return folder ? folder : installed;
}

static bool control_read_all(int fd, struct builder *builder)
{
    for (;;) {
        ssize_t got = read(fd, builder_reserve(builder, 65536), 65536);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        builder->size += (size_t)got;
        if (builder->size > FILE_MAX) {
            errno = EFBIG;
            return false;
        }
    }
}

bool control_read_file(struct arena *arena, const char *path, struct bytes *text_r)
{
    struct builder builder = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_read = fd >= 0 && control_read_all(fd, &builder);
    if (!is_read)
        message_print("%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    *text_r = builder_take(&builder, arena);
    return is_read;
}

/* A device or a pipe is written to: replacing it with a file would take it away from its other users. */
static bool write_through(const char *path, struct bytes text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = fd >= 0 && bytes_write(fd, text);
    if (!is_written)
        message_print("%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return is_written;
}

/* The file that a symbolic link leads to, so that the link stays. */
static const char *control_follow(struct arena *arena, const char *path)
{
    char *target = realpath(path, NULL);
    if (!target)
        return path; /* a new file */
    path = arena_copy(arena, target, strlen(target));
    free(target);
    return path;
}

bool control_write_file(struct arena *arena, const char *path, struct bytes text, int mode)
{
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return write_through(path, text);
    path = control_follow(arena, path);
    char *draft = arena_printf(arena, "%s.XXXXXX", path);
    int fd = mkostemp(draft, O_CLOEXEC);
    if (fd < 0)
        return message_refuse("%s: %s", path, strerror(errno));
    bool is_written = bytes_write(fd, text) && fchmod(fd, (mode_t)mode) == 0 && fsync(fd) == 0;
    int why = errno;
    if (close(fd) != 0 && is_written) {
        is_written = false;
        why = errno;
    }
    if (is_written && rename(draft, path) != 0) {
        is_written = false;
        why = errno;
    }
    if (!is_written) {
        unlink(draft);
        message_print("%s: %s", path, strerror(why));
    }
    return is_written;
}
