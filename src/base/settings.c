/* settings: each pair of the file is one of the table. */
#include "base/settings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/bytes.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/pairs.h"
#include "base/schedule.h"

enum setting {
#define TEXT(name, value, description)                      SETTING_##name,
#define CHOICE(name, value, words, description)             SETTING_##name,
#define NUMBER(name, value, least, most, unit, description) SETTING_##name,
#include "base/settings_table.h"
#undef TEXT
#undef CHOICE
#undef NUMBER
    SETTING_COUNT
};

struct settings_reader {
    struct settings *settings;
    bool is_continued; /* the value continues the previous one */
    bool is_given[SETTING_COUNT];
    char *problem;
    size_t problem_size;
};

static char *duplicate(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        log_fatal("out of memory reading settings");
    return copy;
}

/* The number of a word in a list of words separated by blanks; -1: it is none of them. */
static int64_t find_choice(const char *words, const char *word)
{
    size_t size = strlen(word);
    for (int64_t number = 0; *words; number++) {
        size_t length = strcspn(words, " ");
        if (length == size && memcmp(words, word, size) == 0)
            return number;
        words += length + strspn(words + length, " ");
    }
    return -1;
}

static void set_defaults(struct settings *settings)
{
#define TEXT(name, value, description)                      settings->name = duplicate(value);
#define CHOICE(name, value, words, description)             settings->name = find_choice(words, value);
#define NUMBER(name, value, least, most, unit, description) settings->name = value;
#include "base/settings_table.h"
#undef TEXT
#undef CHOICE
#undef NUMBER
    settings->cell_count = 0;
}

void settings_free(struct settings *settings)
{
    for (size_t i = 0; i < settings->cell_count; i++) {
        free(settings->cells[i].name);
        free(settings->cells[i].conninfo);
        free(settings->cells[i].replica);
    }
    settings->cell_count = 0;
#define TEXT(name, value, description)                                                                       \
    free(settings->name);                                                                                    \
    settings->name = NULL;
#define CHOICE(name, value, words, description)
#define NUMBER(name, value, least, most, unit, description)
#include "base/settings_table.h"
#undef TEXT
#undef CHOICE
#undef NUMBER
}

static bool PRINTF_LIKE(2, 3) settings_refuse(struct settings_reader *reader, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->problem, reader->problem_size, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_first(struct settings_reader *reader, enum setting setting, const char *name)
{
    if (reader->is_given[setting])
        return settings_refuse(reader, "%s: given a second time", name);
    reader->is_given[setting] = true;
    return true;
}

static bool set_number(struct settings_reader *reader, int64_t *field, const char *name, const char *value,
                       int64_t least, int64_t most, const char *unit)
{
    int64_t number;
    if (!bytes_to_i64(bytes_of(value), &number) || number < least || number > most)
        return settings_refuse(reader, "%s = %s: expected a number of %s from %lld to %lld", name, value,
                               unit, (long long)least, (long long)most);
    *field = number;
    return true;
}

/* "error, warning, info or debug" */
static const char *list_choices(const char *words, char *text, size_t size)
{
    size_t used = 0;
    while (*words && used < size) {
        size_t length = strcspn(words, " ");
        bool is_last = !words[length], is_next_last = !is_last && !strchr(words + length + 1, ' ');
        used += (size_t)snprintf(text + used, size - used, "%.*s%s", (int)length, words,
                                 is_last        ? ""
                                 : is_next_last ? " or "
                                                : ", ");
        words += length + strspn(words + length, " ");
    }
    return text;
}

static bool set_choice(struct settings_reader *reader, int64_t *field, const char *name, const char *value,
                       const char *words)
{
    char choices[128] = "";
    *field = find_choice(words, value);
    return *field >= 0 || settings_refuse(reader, "%s = %s: expected %s", name, value,
                                          list_choices(words, choices, sizeof choices));
}

static bool set_text(char **field, const char *value)
{
    free(*field);
    *field = duplicate(value);
    return true;
}

static bool continue_text(char **field, const char *value)
{
    char *longer;
    if (asprintf(&longer, "%s %s", *field, value) < 0)
        log_fatal("out of memory reading settings");
    free(*field);
    *field = longer;
    return true;
}

/* NULL: there is none of this name. */
static const struct settings_cell *find_cell(const struct settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->cell_count; i++)
        if (strcmp(settings->cells[i].name, name) == 0)
            return &settings->cells[i];
    return NULL;
}

/* `database.NAME = …`, `replica.NAME = …`, in any order. */
static bool take_cell(struct settings_reader *reader, const char *name, const char *value)
{
    struct settings *settings = reader->settings;
    bool is_replica = *name == 'r';
    const char *cell_name = strchr(name, '.') + 1;
    if (!settings_is_cell(cell_name))
        return settings_refuse(
            reader, "%s: expected %.*s and the name of a cell, 1 to %d of a-z and 0-9, a letter first", name,
            (int)(cell_name - name), name, SETTINGS_CELL_NAME_MOST);
    const struct settings_cell *known = find_cell(settings, cell_name);
    struct settings_cell *cell = known ? &settings->cells[known - settings->cells] : NULL;
    if (!cell && settings->cell_count == SETTINGS_CELLS_MOST)
        return settings_refuse(reader, "%s: expected at most %d cells", name, SETTINGS_CELLS_MOST);
    if (!cell) {
        cell = &settings->cells[settings->cell_count++];
        *cell = (struct settings_cell){.name = duplicate(cell_name)};
    }
    char **field = is_replica ? &cell->replica : &cell->conninfo;
    if (reader->is_continued)
        return continue_text(field, value);
    if (*field)
        return settings_refuse(reader, "%s: given a second time", name);
    *field = duplicate(value);
    return true;
}

static bool check_cells(struct settings_reader *reader)
{
    const struct settings *settings = reader->settings;
    for (size_t i = 0; i < settings->cell_count; i++)
        if (!settings->cells[i].conninfo)
            return settings_refuse(reader, "replica.%s needs database.%s", settings->cells[i].name,
                                   settings->cells[i].name);
    return true;
}

static bool is_of_cell(const char *name)
{
    return strncmp(name, "database.", 9) == 0 || strncmp(name, "replica.", 8) == 0;
}

static bool settings_take_pair(void *context, const struct named_value *pair)
{
    struct settings_reader *reader = context;
    const char *name = pair->name, *value = pair->value;
    reader->is_continued = pair->is_continued;
    if (is_of_cell(name))
        return take_cell(reader, name, value);
#define TEXT(field, standard, description)                                                                   \
    if (strcmp(name, #field) == 0)                                                                           \
        return reader->is_continued                                                                          \
                   ? continue_text(&reader->settings->field, value)                                          \
                   : is_first(reader, SETTING_##field, name) && set_text(&reader->settings->field, value);
#define CHOICE(field, standard, words, description)                                                          \
    if (strcmp(name, #field) == 0)                                                                           \
        return is_first(reader, SETTING_##field, name) &&                                                    \
               set_choice(reader, &reader->settings->field, name, value, words);
#define NUMBER(field, standard, least, most, unit, description)                                              \
    if (strcmp(name, #field) == 0)                                                                           \
        return is_first(reader, SETTING_##field, name) &&                                                    \
               set_number(reader, &reader->settings->field, name, value, least, most, unit);
#include "base/settings_table.h"
#undef TEXT
#undef CHOICE
#undef NUMBER
    return *name ? settings_refuse(reader, "%s: there is no such setting", name)
                 : settings_refuse(reader, "expected name = value");
}

/* The longest path made in run_directory, `/worker-127.sock`, must fit into a socket's address (108 bytes),
 * and the name under which a socket is bound first (edge/local_socket.h), too. */
enum { RUN_DIRECTORY_MAX = 90, SOCKET_PATH_MAX = 103 };

static bool settings_is_digest(const char *text)
{
    size_t digits = strlen(text);
    return !digits || (digits == 64 && strspn(text, "0123456789abcdef") == 64);
}

static bool is_manager_code(const char *code)
{
    size_t size = strlen(code);
    return strncmp(code, "qm", 2) == 0 && size <= 16 &&
           strspn(code, "abcdefghijklmnopqrstuvwxyz0123456789") == size;
}

/* scheme://host[:port], with one of the schemes, and nothing after it. */
static bool is_server(const char *url, const char *scheme, const char *secure)
{
    const char *host = strstr(url, "://");
    size_t size = host ? (size_t)(host - url) : 0;
    if (!host || ((size != strlen(scheme) || strncmp(url, scheme, size) != 0) &&
                  (size != strlen(secure) || strncmp(url, secure, size) != 0)))
        return false;
    host += 3;
    return *host && !strpbrk(host, "/?#@ \t");
}

static bool check_manager(struct settings_reader *reader)
{
    const struct settings *settings = reader->settings;
    int concurrency[SCHEDULE_QUEUES];
    if (!is_manager_code(settings->queue_code))
        return settings_refuse(reader, "queue_code = %s: expected qm, then up to 14 of a-z and 0-9",
                               settings->queue_code);
    if (!schedule_concurrency(settings->queue_concurrency, concurrency))
        return settings_refuse(reader,
                               "queue_concurrency = %s: expected up to %d numbers up to %d, the first not 0",
                               settings->queue_concurrency, SCHEDULE_QUEUES, SCHEDULE_CONCURRENCY_MAX);
    if (!is_server(settings->queue_url, "http", "https"))
        return settings_refuse(reader, "queue_url = %s: expected https://host:port", settings->queue_url);
    if (!is_server(settings->mail_server, "smtp", "smtps"))
        return settings_refuse(reader, "mail_server = %s: expected smtp://host:port", settings->mail_server);
    return (!*settings->mail_to || *settings->mail_from) ||
           settings_refuse(reader, "mail_to needs mail_from");
}

/* mailto: or https: and an address of visible characters. */
static bool is_contact(const char *contact)
{
    size_t scheme = strncmp(contact, "mailto:", 7) == 0 ? 7 : strncmp(contact, "https://", 8) == 0 ? 8 : 0;
    const char *at = contact + scheme;
    while (*at > ' ' && *at <= '~')
        at++;
    return scheme && contact[scheme] && !*at;
}

static bool check_networks(struct settings_reader *reader, const char *name, const char *value)
{
    for (const char *word = value + strspn(value, " "); *word; word += strspn(word, " ")) {
        size_t size = strcspn(word, " ");
        if (!address_is_network((struct bytes){word, size}))
            return settings_refuse(reader, "%s: %.*s is no address and no network as ADDRESS/BITS", name,
                                   (int)size, word);
        word += size;
    }
    return true;
}

/* The name of a header, or nginx's name for the protocol. */
static bool check_clients(struct settings_reader *reader)
{
    const struct settings *settings = reader->settings;
    const char *header = settings->client_address_header;
    size_t size = strspn(header, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
    if (strcmp(header, "proxy_protocol") != 0 && (!size || header[size]))
        return settings_refuse(
            reader, "client_address_header = %s: expected a header's name or proxy_protocol", header);
    return check_networks(reader, "exempt_clients", settings->exempt_clients) &&
           check_networks(reader, "trusted_proxies", settings->trusted_proxies);
}

static bool check_push(struct settings_reader *reader)
{
    const struct settings *settings = reader->settings;
    if (*settings->push_contact && !is_contact(settings->push_contact))
        return settings_refuse(reader, "push_contact = %s: expected mailto:address or https://address",
                               settings->push_contact);
    return !*settings->push_key_file || *settings->push_contact ||
           settings_refuse(reader, "push_key_file needs push_contact");
}

/* Addresses of managers, without credentials: the key is sent in the body. */
static bool are_addresses(const char *text)
{
    for (const char *at = text; *at;) {
        size_t size = strcspn(at, " \t");
        bool has_scheme = strncmp(at, "https://", 8) == 0 || strncmp(at, "http://", 7) == 0;
        if (size && (!has_scheme || memchr(at, '@', size) || memchr(at, '?', size)))
            return false;
        at += size + strspn(at + size, " \t");
    }
    return true;
}

/* --- cells --- */

const char *settings_cell_of(const char *database)
{
    const char *at = strchr(database, '@');
    return at ? at + 1 : "";
}

bool settings_is_cell(const char *name)
{
    size_t size = strlen(name);
    return *name >= 'a' && *name <= 'z' && size <= SETTINGS_CELL_NAME_MOST &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") == size;
}

const char *settings_conninfo_of_cell(const struct settings *settings, const char *cell)
{
    if (!*cell)
        return settings->database;
    const struct settings_cell *found = find_cell(settings, cell);
    return found ? found->conninfo : NULL;
}

const char *settings_conninfo(const struct settings *settings, const char *database)
{
    return settings_conninfo_of_cell(settings, settings_cell_of(database));
}

const char *settings_replica(const struct settings *settings, const char *database)
{
    const char *cell = settings_cell_of(database);
    const struct settings_cell *found = find_cell(settings, cell);
    const char *replica = found ? found->replica : NULL;
    if (!*cell)
        replica = settings->replica;
    return replica && *replica ? replica : NULL;
}

bool settings_has_replicas(const struct settings *settings)
{
    bool has = settings->replica && *settings->replica;
    for (size_t i = 0; i < settings->cell_count; i++)
        has |= settings->cells[i].replica && *settings->cells[i].replica;
    return has;
}

bool settings_wakeup_path(const struct settings *settings, char path_r[SETTINGS_PATH_BYTES])
{
    const char *path = settings->queue_socket;
    int size = *path ? snprintf(path_r, SETTINGS_PATH_BYTES, "%s", path)
                     : snprintf(path_r, SETTINGS_PATH_BYTES, "%s/%s.wake", settings->run_directory,
                                settings->queue_code);
    return strcmp(path, "off") != 0 && size > 0 && size < SETTINGS_PATH_BYTES;
}

static bool check_tasks(struct settings_reader *reader)
{
    const struct settings *settings = reader->settings;
    if (!settings_is_digest(settings->queue_key_sha256))
        return settings_refuse(reader, "queue_key_sha256: expected 64 hexadecimal digits in lower case");
    if (*settings->queue_socket && strcmp(settings->queue_socket, "off") != 0 &&
        (*settings->queue_socket != '/' || strlen(settings->queue_socket) > SOCKET_PATH_MAX))
        return settings_refuse(reader,
                               "queue_socket = %s: expected an absolute path of at most %d bytes, or off",
                               settings->queue_socket, SOCKET_PATH_MAX);
    if (!are_addresses(settings->queue_remotes))
        return settings_refuse(reader, "queue_remotes = %s: expected https://host/code, separated by blanks",
                               settings->queue_remotes);
    if (*settings->queue_remotes && !*settings->queue_key_file)
        return settings_refuse(reader, "queue_remotes needs queue_key_file");
    if (!schedule_is_queues(settings->task_queues))
        return settings_refuse(reader, "task_queues = %s: expected Name=number, numbers from 0 to %d",
                               settings->task_queues, SCHEDULE_QUEUES - 1);
    if (!schedule_is_retries(bytes_of(settings->task_retries)))
        return settings_refuse(reader, "task_retries = %s: expected up to %d numbers of minutes, up to %d",
                               settings->task_retries, SCHEDULE_RETRIES_MAX, SCHEDULE_MINUTES_MAX);
    if (!schedule_is_retries_of(settings->task_retries_of))
        return settings_refuse(reader,
                               "task_retries_of = %s: expected Name=delays, separated by commas, at most %d",
                               settings->task_retries_of, SCHEDULE_RETRIES_MAX);
    return check_manager(reader) && check_push(reader);
}

static bool check_collector(struct settings_reader *reader, const char *name, const char *url)
{
    bool has_scheme = strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0;
    return !*url || (has_scheme && !strchr(url, ' ')) ||
           settings_refuse(reader, "%s = %s: expected http://host/path or https://host/path", name, url);
}

/* Checks beyond type and limits: choices, formats, powers of two. */
static bool check_whole(struct settings_reader *reader)
{
    const struct settings *settings = reader->settings;
    const char *wrong;
    size_t wrong_size;
    if (!crash_is_list(settings->debug_die_at, &wrong, &wrong_size))
        return settings_refuse(reader, "debug_die_at: %.*s is no STEP[:PASSAGE[:DEATHS]]", (int)wrong_size,
                               wrong);
    if (!settings_is_digest(settings->admin_key_sha256))
        return settings_refuse(reader, "admin_key_sha256: expected 64 hexadecimal digits in lower case");
    if (*settings->run_directory != '/' || strlen(settings->run_directory) > RUN_DIRECTORY_MAX)
        return settings_refuse(reader, "run_directory = %s: expected an absolute path of at most %d bytes",
                               settings->run_directory, RUN_DIRECTORY_MAX);
    if (*settings->segment && *settings->segment != '/')
        return settings_refuse(reader, "segment = %s: expected an absolute path", settings->segment);
    if (*settings->site_key_command && (*settings->site_key_command != '/' || *settings->site_key_file))
        return settings_refuse(reader,
                               "site_key_command = %s: expected an absolute path, and no site_key_file",
                               settings->site_key_command);
    if (settings->limit_answer_bytes <= settings->limit_document_bytes)
        return settings_refuse(
            reader, "limit_answer_bytes = %lld: expected more than limit_document_bytes, %lld",
            (long long)settings->limit_answer_bytes, (long long)settings->limit_document_bytes);
    if (strchr(settings->z_database, '@'))
        return settings_refuse(reader, "z_database = %s: expected a database of the cell of `database`",
                               settings->z_database);
    if (settings->segment_slots & (settings->segment_slots - 1))
        return settings_refuse(reader, "segment_slots = %lld: expected a power of two",
                               (long long)settings->segment_slots);
    return check_cells(reader) && check_clients(reader) && check_tasks(reader) &&
           check_collector(reader, "metrics_url", settings->metrics_url) &&
           check_collector(reader, "trace_url", settings->trace_url);
}

bool settings_load(struct settings *settings, const char *path, char *problem, size_t problem_size)
{
    char detail[512] = "";
    struct settings_reader reader = {.settings = settings, .problem = detail, .problem_size = sizeof detail};
    struct pairs pairs = {settings_take_pair, &reader, detail, sizeof detail, .has_sections = false};
    set_defaults(settings);
    if (pairs_read(&pairs, path) && check_whole(&reader))
        return true;
    if (pairs.number)
        snprintf(problem, problem_size, "%s:%d: %s", path, pairs.number, detail);
    else
        snprintf(problem, problem_size, "%s: %s", path, detail);
    settings_free(settings);
    return false;
}

void settings_describe(void (*write_line)(const char *line))
{
    char line[1024], choices[128];
#define TEXT(name, value, description)                                                                       \
    write_line("");                                                                                          \
    snprintf(line, sizeof line, "# %s", description);                                                        \
    write_line(line);                                                                                        \
    snprintf(line, sizeof line, "#%s =%s%s", #name, sizeof(value) > 1 ? " " : "", value);                    \
    write_line(line);
#define CHOICE(name, value, words, description)                                                              \
    write_line("");                                                                                          \
    snprintf(line, sizeof line, "# %s  Values: %s.", description,                                            \
             list_choices(words, choices, sizeof choices));                                                  \
    write_line(line);                                                                                        \
    snprintf(line, sizeof line, "#%s = %s", #name, value);                                                   \
    write_line(line);
#define NUMBER(name, value, least, most, unit, description)                                                  \
    write_line("");                                                                                          \
    snprintf(line, sizeof line, "# %s  Unit: %s, from %lld to %lld.", description, unit, (long long)(least), \
             (long long)(most));                                                                             \
    write_line(line);                                                                                        \
    snprintf(line, sizeof line, "#%s = %lld", #name, (long long)(value));                                    \
    write_line(line);
#include "base/settings_table.h"
#undef TEXT
#undef CHOICE
#undef NUMBER
}

void settings_open_log(const struct settings *settings, const char *program)
{
    /* log_level has the words of enum log_level, log_format those of enum log_format, in their order. */
    log_open(program, (enum log_level)settings->log_level, settings->log_to == LOG_TO_SYSLOG,
             (enum log_format)settings->log_format);
}

bool settings_segment_path(const struct settings *settings, char *path_r, size_t path_size)
{
    int size = *settings->segment ? snprintf(path_r, path_size, "%s", settings->segment)
                                  : snprintf(path_r, path_size, "%s/segment", settings->run_directory);
    return size > 0 && (size_t)size < path_size;
}

int64_t settings_anonymous_body(const struct settings *settings)
{
    return settings->limit_anonymous_body_bytes < settings->limit_body_bytes
               ? settings->limit_anonymous_body_bytes
               : settings->limit_body_bytes;
}

int64_t settings_live_body(const struct settings *settings)
{
    enum { LEAST = 64 * 1024, DEFINITION = 1024 /* about, with every byte escaped */ };
    int64_t bytes = LEAST + settings->live_definitions * DEFINITION;
    return bytes < settings->limit_body_bytes ? bytes : settings->limit_body_bytes;
}
