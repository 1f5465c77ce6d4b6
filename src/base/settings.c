#include "base/settings.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"

static char *duplicate(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        log_fatal("out of memory reading settings");
    return copy;
}

static void set_defaults(struct settings *settings)
{
#define TEXT(name, value, description) settings->name = duplicate(value);
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

struct reading {
    struct settings *settings;
    char *problem;
    size_t problem_size;
};

static bool set_number(int64_t *field, const char *name, const char *value, int64_t least, int64_t most,
                       const char *unit, struct reading *reading)
{
    int64_t number;
    if (bytes_to_i64(bytes_of(value), &number) && number >= least && number <= most) {
        *field = number;
        return true;
    }
    snprintf(reading->problem, reading->problem_size, "%s = %s: expected a number of %s from %lld to %lld", name,
             value, unit, (long long)least, (long long)most);
    return false;
}

static bool set_text(char **field, const char *value)
{
    free(*field);
    *field = duplicate(value);
    return true;
}

static int take_pair(void *context, const char *section, const char *name, const char *value)
{
    struct reading *reading = context;
    if (*section) {
        snprintf(reading->problem, reading->problem_size, "[%s]: the file has no sections", section);
        return 0;
    }
#define TEXT(field, standard, description)                                                                   \
    if (strcmp(name, #field) == 0)                                                                           \
        return set_text(&reading->settings->field, value);
#define NUMBER(field, standard, least, most, unit, description)                                              \
    if (strcmp(name, #field) == 0)                                                                           \
        return set_number(&reading->settings->field, name, value, least, most, unit, reading);
#include "base/settings_table.h"
#undef TEXT
#undef NUMBER
    snprintf(reading->problem, reading->problem_size, "%s: there is no such setting", name);
    return 0;
}

static bool is_one_of(const char *value, const char *const *choices)
{
    for (; *choices; choices++)
        if (strcmp(value, *choices) == 0)
            return true;
    return false;
}

/* What a single line cannot tell: choices and powers of two. */
static bool check_whole(const struct settings *settings, char *problem, size_t problem_size)
{
    static const char *const hosts[] = {"one", "many", NULL};
    static const char *const levels[] = {"error", "warning", "info", "debug", NULL};
    static const char *const logs[] = {"stderr", "syslog", NULL};
    size_t digits = strlen(settings->admin_key_sha256);
    if (!is_one_of(settings->hosts, hosts))
        snprintf(problem, problem_size, "hosts = %s: expected one or many", settings->hosts);
    else if (!is_one_of(settings->log_level, levels))
        snprintf(problem, problem_size, "log_level = %s: expected error, warning, info or debug", settings->log_level);
    else if (!is_one_of(settings->log_to, logs))
        snprintf(problem, problem_size, "log_to = %s: expected stderr or syslog", settings->log_to);
    else if (digits && (digits != 64 || strspn(settings->admin_key_sha256, "0123456789abcdef") != 64))
        snprintf(problem, problem_size, "admin_key_sha256: expected 64 hexadecimal digits in lower case");
    else if (settings->segment_slots & (settings->segment_slots - 1))
        snprintf(problem, problem_size, "segment_slots = %lld: expected a power of two", (long long)settings->segment_slots);
    else
        return true;
    return false;
}

bool settings_load(struct settings *settings, const char *path, char *problem, size_t problem_size)
{
    char detail[512] = "", whole[512] = "";
    struct reading reading = {.settings = settings, .problem = detail, .problem_size = sizeof detail};
    set_defaults(settings);
    int line = ini_parse(path, take_pair, &reading);
    if (line == -1)
        snprintf(problem, problem_size, "%s: %s", path, strerror(errno));
    else if (line < 0)
        snprintf(problem, problem_size, "%s: out of memory", path);
    else if (line > 0)
        snprintf(problem, problem_size, "%s:%d: %s", path, line, *detail ? detail : "expected name = value");
    else if (!check_whole(settings, whole, sizeof whole))
        snprintf(problem, problem_size, "%s: %s", path, whole);
    else
        return true;
    settings_free(settings);
    return false;
}

void settings_describe(void (*write_line)(const char *line))
{
    char line[1024];
#define TEXT(name, value, description)                                                                       \
    snprintf(line, sizeof line, "# %s", description);                                                        \
    write_line(line);                                                                                        \
    snprintf(line, sizeof line, "#%s = %s", #name, value);                                                   \
    write_line(line);                                                                                        \
    write_line("");
#define NUMBER(name, value, least, most, unit, description)                                                  \
    snprintf(line, sizeof line, "# %s  Unit: %s, from %lld to %lld.", description, unit, (long long)(least), \
             (long long)(most));                                                                             \
    write_line(line);                                                                                        \
    snprintf(line, sizeof line, "#%s = %lld", #name, (long long)(value));                                    \
    write_line(line);                                                                                        \
    write_line("");
#include "base/settings_table.h"
#undef TEXT
#undef NUMBER
}
