/* forward_settings: each pair of the file is one of the table. */
#include "forward/forward_settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/pairs.h"

struct forward_reader {
    struct forward_settings *settings;
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

static void set_defaults(struct forward_settings *settings)
{
#define TEXT(name, value, description)                      settings->name = duplicate(value);
#define NUMBER(name, value, least, most, unit, description) settings->name = value;
#include "forward/forward_settings_table.h"
#undef TEXT
#undef NUMBER
}

void forward_settings_free(struct forward_settings *settings)
{
#define TEXT(name, value, description)                                                                       \
    free(settings->name);                                                                                    \
    settings->name = NULL;
#define NUMBER(name, value, least, most, unit, description)
#include "forward/forward_settings_table.h"
#undef TEXT
#undef NUMBER
}

static bool PRINTF_LIKE(2, 3) forward_settings_refuse(struct forward_reader *reader, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->problem, reader->problem_size, format, arguments);
    va_end(arguments);
    return false;
}

static bool set_text(char **field, const char *value)
{
    free(*field);
    *field = duplicate(value);
    return true;
}

static bool set_number(struct forward_reader *reader, int64_t *field, const struct named_value *pair,
                       int64_t least, int64_t most, const char *unit)
{
    int64_t number;
    if (!bytes_to_i64(bytes_of(pair->value), &number) || number < least || number > most)
        return forward_settings_refuse(reader, "%s = %s: expected a number of %s from %lld to %lld",
                                       pair->name, pair->value, unit, (long long)least, (long long)most);
    *field = number;
    return true;
}

static bool forward_settings_take_pair(void *context, const struct named_value *pair)
{
    struct forward_reader *reader = context;
    struct forward_settings *settings = reader->settings;
    if (pair->is_continued)
        return forward_settings_refuse(reader, "%s: its value is one line", pair->name);
#define TEXT(known, standard, description)                                                                   \
    if (strcmp(pair->name, #known) == 0)                                                                     \
        return set_text(&settings->known, pair->value);
#define NUMBER(known, standard, least, most, unit, description)                                              \
    if (strcmp(pair->name, #known) == 0)                                                                     \
        return set_number(reader, &settings->known, pair, least, most, unit);
#include "forward/forward_settings_table.h"
#undef TEXT
#undef NUMBER
    return forward_settings_refuse(reader, "%s: there is no such setting", pair->name);
}

/* Paths are appended to it. */
static bool is_url(char *url)
{
    size_t size = strlen(url);
    while (size && url[size - 1] == '/')
        url[--size] = 0;
    const char *host = strncmp(url, "https://", 8) == 0  ? url + 8
                       : strncmp(url, "http://", 7) == 0 ? url + 7
                                                         : "";
    return *host && !strpbrk(url, " \t?#");
}

bool forward_settings_load(struct forward_settings *settings, const char *path, char *problem,
                           size_t problem_size)
{
    char detail[512] = "";
    struct forward_reader reader = {.settings = settings, .problem = detail, .problem_size = sizeof detail};
    struct pairs pairs = {forward_settings_take_pair, &reader, detail, sizeof detail, .has_sections = false};
    set_defaults(settings);
    bool is_read = pairs_read(&pairs, path);
    bool is_format_known =
        is_read && (strcmp(settings->log_format, "text") == 0 || strcmp(settings->log_format, "json") == 0);
    bool has_all = is_read && *settings->url && *settings->key_file && *settings->spool;
    if (has_all && is_format_known && is_url(settings->url))
        return true;
    if (is_read && !is_format_known)
        snprintf(problem, problem_size, "%s: log_format = %s: expected text or json", path,
                 settings->log_format);
    else if (has_all)
        snprintf(problem, problem_size, "%s: url = %s: https://host or https://host:port is expected", path,
                 settings->url);
    else if (is_read)
        snprintf(problem, problem_size, "%s: url, key_file and spool are needed", path);
    else if (pairs.number)
        snprintf(problem, problem_size, "%s:%d: %s", path, pairs.number, detail);
    else
        snprintf(problem, problem_size, "%s: %s", path, detail);
    return false;
}
