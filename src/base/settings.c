/* settings: the reader of the ini file.  Written here and not taken from a library, because a setting must
 * never be cut, continued, commented out or given twice without a word. */
#include "base/settings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"

enum setting {
#define TEXT(name, value, description)                      SETTING_##name,
#define NUMBER(name, value, least, most, unit, description) SETTING_##name,
#include "base/settings_table.h"
#undef TEXT
#undef NUMBER
    SETTING_COUNT
};

struct reading {
    struct settings *settings;
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

static void set_defaults(struct settings *settings)
{
#define TEXT(name, value, description)                      settings->name = duplicate(value);
#define NUMBER(name, value, least, most, unit, description) settings->name = value;
#include "base/settings_table.h"
#undef TEXT
#undef NUMBER
}

void settings_free(struct settings *settings)
{
#define TEXT(name, value, description)                                                                       \
    free(settings->name);                                                                                    \
    settings->name = NULL;
#define NUMBER(name, value, least, most, unit, description)
#include "base/settings_table.h"
#undef TEXT
#undef NUMBER
}

static bool PRINTF_LIKE(2, 3) refuse(struct reading *reading, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reading->problem, reading->problem_size, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_first(struct reading *reading, enum setting setting, const char *name)
{
    if (reading->is_given[setting])
        return refuse(reading, "%s: given a second time", name);
    reading->is_given[setting] = true;
    return true;
}

static bool set_number(struct reading *reading, int64_t *field, const char *name, const char *value,
                       int64_t least, int64_t most, const char *unit)
{
    int64_t number;
    if (!bytes_to_i64(bytes_of(value), &number) || number < least || number > most)
        return refuse(reading, "%s = %s: expected a number of %s from %lld to %lld", name, value, unit,
                      (long long)least, (long long)most);
    *field = number;
    return true;
}

static bool set_text(char **field, const char *value)
{
    free(*field);
    *field = duplicate(value);
    return true;
}

static bool take_pair(struct reading *reading, const char *name, const char *value)
{
#define TEXT(field, standard, description)                                                                   \
    if (strcmp(name, #field) == 0)                                                                           \
        return is_first(reading, SETTING_##field, name) && set_text(&reading->settings->field, value);
#define NUMBER(field, standard, least, most, unit, description)                                              \
    if (strcmp(name, #field) == 0)                                                                           \
        return is_first(reading, SETTING_##field, name) &&                                                   \
               set_number(reading, &reading->settings->field, name, value, least, most, unit);
#include "base/settings_table.h"
#undef TEXT
#undef NUMBER
    return refuse(reading, "%s: there is no such setting", name);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char *trim_end(char *start, char *end)
{
    while (end > start && is_blank(end[-1]))
        end--;
    *end = '\0';
    return start;
}

/* An empty line, a comment, or name = value. */
static bool take_line(struct reading *reading, char *line, size_t size)
{
    if (memchr(line, '\0', size))
        return refuse(reading, "a NUL byte: this is no text file");
    bool is_indented = is_blank(*line);
    trim_end(line, line + size);
    if (!*line || *line == '#' || *line == ';')
        return true;
    if (is_indented)
        return refuse(reading, "a blank before the name: a setting begins its line and takes one line");
    if (*line == '[')
        return refuse(reading, "%s: the file has no sections", line);
    char *equals = strchr(line, '=');
    if (!equals || equals == line)
        return refuse(reading, "expected name = value");
    trim_end(line, equals);
    for (equals++; is_blank(*equals); equals++)
        ;
    return take_pair(reading, line, equals);
}

static bool is_one_of(const char *value, const char *const *choices)
{
    for (; *choices; choices++)
        if (strcmp(value, *choices) == 0)
            return true;
    return false;
}

/* The longest path made in run_directory, `/worker-127.sock`, must fit into a socket's address (108 bytes).
 */
enum { RUN_DIRECTORY_MAX = 90 };

/* What a single line cannot tell: choices, shapes, powers of two. */
static bool check_whole(struct reading *reading)
{
    static const char *const hosts[] = {"one", "many", NULL};
    static const char *const levels[] = {"error", "warning", "info", "debug", NULL};
    static const char *const logs[] = {"stderr", "syslog", NULL};
    const struct settings *settings = reading->settings;
    size_t digits = strlen(settings->admin_key_sha256);
    if (!is_one_of(settings->hosts, hosts))
        return refuse(reading, "hosts = %s: expected one or many", settings->hosts);
    if (!is_one_of(settings->log_level, levels))
        return refuse(reading, "log_level = %s: expected error, warning, info or debug", settings->log_level);
    if (!is_one_of(settings->log_to, logs))
        return refuse(reading, "log_to = %s: expected stderr or syslog", settings->log_to);
    if (digits && (digits != 64 || strspn(settings->admin_key_sha256, "0123456789abcdef") != 64))
        return refuse(reading, "admin_key_sha256: expected 64 hexadecimal digits in lower case");
    if (*settings->run_directory != '/' || strlen(settings->run_directory) > RUN_DIRECTORY_MAX)
        return refuse(reading, "run_directory = %s: expected an absolute path of at most %d bytes",
                      settings->run_directory, RUN_DIRECTORY_MAX);
    if (*settings->segment && *settings->segment != '/')
        return refuse(reading, "segment = %s: expected an absolute path", settings->segment);
    if (settings->segment_slots & (settings->segment_slots - 1))
        return refuse(reading, "segment_slots = %lld: expected a power of two",
                      (long long)settings->segment_slots);
    return true;
}

/* Reads line by line; on failure says which one. */
static bool read_file(struct reading *reading, FILE *file, int *line_r)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    bool good = true;
    while (good && (size = getline(&line, &capacity, file)) >= 0) {
        ++*line_r;
        good = take_line(reading, line, (size_t)size);
    }
    if (good && ferror(file)) {
        *line_r = 0;
        good = refuse(reading, "%s", strerror(errno));
    }
    free(line);
    return good;
}

bool settings_load(struct settings *settings, const char *path, char *problem, size_t problem_size)
{
    char detail[512] = "";
    struct reading reading = {.settings = settings, .problem = detail, .problem_size = sizeof detail};
    int line = 0;
    set_defaults(settings);
    FILE *file = fopen(path, "re");
    bool good = file ? read_file(&reading, file, &line) : refuse(&reading, "%s", strerror(errno));
    if (file)
        fclose(file);
    if (good) {
        line = 0;
        good = check_whole(&reading);
    }
    if (good)
        return true;
    if (line)
        snprintf(problem, problem_size, "%s:%d: %s", path, line, detail);
    else
        snprintf(problem, problem_size, "%s: %s", path, detail);
    settings_free(settings);
    return false;
}

void settings_describe(void (*write_line)(const char *line))
{
    char line[1024];
#define TEXT(name, value, description)                                                                       \
    write_line("");                                                                                          \
    snprintf(line, sizeof line, "# %s", description);                                                        \
    write_line(line);                                                                                        \
    snprintf(line, sizeof line, "#%s =%s%s", #name, sizeof(value) > 1 ? " " : "", value);                    \
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
#undef NUMBER
}
