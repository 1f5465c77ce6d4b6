/* settings: one file of lines `name = value`; settings_table.h lists every name with its limits and default.
 *
 * Empty lines and lines that begin with # or ; are skipped.  A value is the rest of its line without the
 * blanks around it, taken literally; a text continues in the indented lines that follow, joined with one
 * blank.  A setting given twice, a line that is too long (198 bytes) and a semicolon after a blank are
 * refused. */
#ifndef STAMPD_BASE_SETTINGS_H
#define STAMPD_BASE_SETTINGS_H

#include "base/base.h"

/* The values of settings that are one of a few words, in the order of the words in the table. */
enum { SETTING_OFF, SETTING_ON };
enum { FAULT_STATUS_HTTP, FAULT_STATUS_FEW };
enum { HOSTS_ONE, HOSTS_MANY, HOSTS_PAIR };
enum { ISSUER_ADDRESSES_PUBLIC, ISSUER_ADDRESSES_ANY };
enum { LOG_TO_STDERR, LOG_TO_SYSLOG };
enum { TRACE_CALLER_IGNORED, TRACE_CALLER_TRUSTED };

/* PostgreSQL clusters besides that of `database`: cells.  A database is named NAME, or NAME@CELL. */
enum { SETTINGS_CELLS_MOST = 64, SETTINGS_CELL_NAME_MOST = 16 };
struct settings_cell {
    char *name, *conninfo;
    char *replica; /* its standbys; NULL: none is read */
};

struct settings {
#define TEXT(name, value, description)                      char *name;
#define CHOICE(name, value, words, description)             int64_t name;
#define NUMBER(name, value, least, most, unit, description) int64_t name;
#include "base/settings_table.h"
#undef TEXT
#undef CHOICE
#undef NUMBER
    struct settings_cell cells[SETTINGS_CELLS_MOST]; /* `database.NAME = …`, `replica.NAME = …` */
    size_t cell_count;
};

/* A notification in z: the host of a pair that serves is to hand over. */
#define LEASE_CHANNEL "stampd_lease"
#define LEASE_SWITCH  "switch"

/* Sets the defaults, then reads the file at `path`.  On failure returns false and writes one line to
 * `problem` that names the file, the line number and the error.  The settings own their texts. */
MUST_USE bool settings_load(struct settings *settings, const char *path, char *problem, size_t problem_size);
void settings_free(struct settings *settings);
/* The cell of a database: what follows the @; "": that of `database`. */
const char *settings_cell_of(const char *database);
/* A valid name: ^[a-z][a-z0-9]{0,15}$ ? */
bool settings_is_cell(const char *name);
/* The connection string of a cell; NULL: the settings do not have it. */
const char *settings_conninfo_of_cell(const struct settings *settings, const char *cell);
/* The same of the cell of a database. */
const char *settings_conninfo(const struct settings *settings, const char *database);
/* That of standbys of its cell, which may answer reads with an age; NULL: there are none. */
const char *settings_replica(const struct settings *settings, const char *database);
bool settings_has_replicas(const struct settings *settings);
/* Path of the segment: the setting, or `segment` in run_directory.  False: it does not fit. */
MUST_USE bool settings_segment_path(const struct settings *settings, char *path_r, size_t path_size);
/* Largest body, in bytes, of a request for live events. */
int64_t settings_live_body(const struct settings *settings);
/* Largest body, in bytes, of a request that may not change anything and has no key in its header. */
int64_t settings_anonymous_body(const struct settings *settings);
/* The socket on which this host's queue manager receives wake-ups: the setting queue_socket, or the default
 * path in run_directory; false: wake-ups are off. */
enum { SETTINGS_PATH_BYTES = 108 };
bool settings_wakeup_path(const struct settings *settings, char path_r[SETTINGS_PATH_BYTES]);
/* Opens the log of `program` according to the settings; `program` is kept, not copied. */
void settings_open_log(const struct settings *settings, const char *program);
/* Writes every setting with unit, limits, default and description, as a commented sample file. */
void settings_describe(void (*write_line)(const char *line));

#endif
