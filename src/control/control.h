/* control: what the commands of stampctl share: exit statuses, settings, connections as administrator,
 * folders. */
#ifndef STAMPD_CONTROL_CONTROL_H
#define STAMPD_CONTROL_CONTROL_H

#include "base/arena.h"
#include "base/settings.h"
#include "control/options.h"
#include "edge/pg/pg.h"

/* Exit statuses: done, failed, wrong usage. */
enum control_status { CONTROL_DONE, CONTROL_FAILED, CONTROL_WRONG };

struct control {
    struct arena *arena;
    const char *config;         /* path of stampd's settings */
    const char *admin_conninfo; /* --admin-conninfo, or NULL: setting `database` without its user; in other
                                   cells the host and port are those of their settings */
    const char *place; /* where ns_registry_connect finds the database of a namespace that moves to another
                          cell; NULL: where its configuration says */
    struct settings settings;
    bool has_settings;
    enum control_status status; /* of a command whose options end it */
    int word_count;             /* of the command's words, as options_read returns them */
};

#define CONTROL_CONFIG_DEFAULT "/etc/stampd/stampd.conf"
/* Entries for the options that many commands share. */
#define CONTROL_CONFIG_LINE(control)                                                                         \
    {                                                                                                        \
        .name = "config", .letter = 'c', .argument = "FILE",                                                 \
        .help = "Read stampd's settings from FILE (default: /etc/stampd/stampd.conf).",                      \
        .text = &(control)->config                                                                           \
    }
#define CONTROL_ADMIN_LINE(control)                                                                          \
    {                                                                                                        \
        .name = "admin-conninfo", .argument = "CONNINFO",                                                    \
        .help = "Connect to PostgreSQL as administrator with this string.",                                  \
        .text = &(control)->admin_conninfo                                                                   \
    }

/* Reads the settings at `config`; on failure reports why. */
MUST_USE bool control_load_settings(struct control *control);

/* The beginning of a command: options_read, then the settings.  NULL: the command ends with control->status.
 */
MUST_USE char **control_begin(struct control *control, const struct command *command,
                              const struct option_line *lines, size_t line_count, int argc, char **argv);

/* Connects to `database`, NAME or NAME@CELL, as administrator; the connection closes when the arena is reset.
 * The caller reports FAULT_ODATABASE (there is no such database); all other failures are reported here. */
MUST_USE enum fault control_connect(struct control *control, const char *database, struct pg **pg_r);
/* Connects as the workers do. */
MUST_USE enum fault control_connect_worker(struct control *control, const char *database, struct pg **pg_r);
/* The role that the workers connect as in the cell of the database: `user` of its setting, default stampd. */
const char *control_worker_role(struct control *control, const char *database);
/* Without its cell. */
const char *control_database_name(struct arena *arena, const char *database);

/* Runs one statement, with parameters or NULL; on failure reports `what` and why. */
MUST_USE bool control_query(struct control *control, struct pg *pg, const char *what, const char *sql,
                            const struct pg_params *params, struct pg_result **result_r);
/* The same for SQL text without parameters and without result. */
MUST_USE bool control_execute(struct pg *pg, const char *what, const char *sql);

/* Is it valid as the name of a class?  Reports why not, as the option --class of `command`. */
MUST_USE bool control_check_class(const char *command, const char *class);

/* A folder of the package: from the environment, from the build tree when the program runs from there, or the
 * installed one. */
const char *control_directory(struct arena *arena, const char *variable, const char *name,
                              const char *installed);
/* Reads a whole file into the arena; on failure reports why. */
MUST_USE bool control_read_file(struct arena *arena, const char *path, struct bytes *text_r);
/* Replaces the file in one step: a reader gets the old text or the new one.  A symbolic link is kept; a
 * device or pipe is written to.  On failure reports why. */
MUST_USE bool control_write_file(struct arena *arena, const char *path, struct bytes text, int mode);

/* --- the commands --- */
int control_account(struct control *control, int argc, char **argv);
int control_audit(struct control *control, int argc, char **argv);
int control_backup(struct control *control, int argc, char **argv);
int control_cell(struct control *control, int argc, char **argv);
int control_cron(struct control *control, int argc, char **argv);
int control_host(struct control *control, int argc, char **argv);
int control_ns(struct control *control, int argc, char **argv);
int control_export(struct control *control, int argc, char **argv);
int control_change(struct control *control, int argc, char **argv);
int control_find(struct control *control, int argc, char **argv);
int control_search(struct control *control, int argc, char **argv);
int control_files(struct control *control, int argc, char **argv);
int control_import(struct control *control, int argc, char **argv);
int control_import_couchdb(struct control *control, int argc, char **argv);
int control_import_csv(struct control *control, int argc, char **argv);
int control_import_firestore(struct control *control, int argc, char **argv);
int control_verify(struct control *control, int argc, char **argv);
int control_doctor(struct control *control, int argc, char **argv);
int control_top(struct control *control, int argc, char **argv);
int control_dump(struct control *control, int argc, char **argv);
int control_journal(struct control *control, int argc, char **argv);
int control_load(struct control *control, int argc, char **argv);
int control_operations(struct control *control, int argc, char **argv);
int control_ping(struct control *control, int argc, char **argv);
int control_check_config(struct control *control, int argc, char **argv);
int control_key(struct control *control, int argc, char **argv);
int control_purge(struct control *control, int argc, char **argv);
int control_push(struct control *control, int argc, char **argv);
int control_restore(struct control *control, int argc, char **argv);
int control_rules(struct control *control, int argc, char **argv);
int control_resource(struct control *control, int argc, char **argv);
int control_setup(struct control *control, int argc, char **argv);
int control_schema(struct control *control, int argc, char **argv);
int control_nginx(struct control *control, int argc, char **argv);
int control_task(struct control *control, int argc, char **argv);

#endif
