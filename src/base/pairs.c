/* pairs: inih gets its lines from here, unchanged or not at all. */
#include "base/pairs.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pairs_reader {
    struct pairs *pairs;
    FILE *file;
    char *line; /* the current line, unchanged */
    size_t capacity;
    int number;
    bool has_name;     /* a pair of the section precedes */
    bool is_continued; /* the line continues its value */
    bool is_wrong;
};

static bool PRINTF_LIKE(2, 3) pairs_refuse(struct pairs_reader *reader, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->pairs->problem, reader->pairs->problem_size, format, arguments);
    va_end(arguments);
    reader->is_wrong = true;
    return false;
}

/* inih's handler: one name with its value, or with the next line of its value. */
static int pairs_take_pair(void *context, const char *section, const char *name, const char *value)
{
    struct pairs_reader *reader = context;
    const struct named_value pair = {section, name, value, reader->is_continued};
    reader->has_name = true;
    reader->is_wrong = reader->is_wrong || !reader->pairs->take(reader->pairs->context, &pair);
    return !reader->is_wrong;
}

/* Would inih read the line unchanged? */
static bool pairs_is_plain(struct pairs_reader *reader, size_t size, size_t most)
{
    const char *line = reader->line, *start = line + strspn(line, " \t\r\n");
    if (memchr(line, '\0', size))
        return pairs_refuse(reader, "a NUL byte: this is no text file");
    if (*start == '\0' || *start == '#' || *start == ';')
        return size <= most || pairs_refuse(reader, "a line of more than %zu bytes", most);
    if (*start == '[' && !reader->pairs->has_sections)
        return pairs_refuse(reader, "%.*s: the file has no sections", (int)strcspn(start, "\r\n"), start);
    if (size > most)
        return pairs_refuse(reader, "a line of more than %zu bytes; a value may go on in indented lines",
                            most);
    const char *comment = strchr(start, ';');
    while (comment && comment[-1] != ' ' && comment[-1] != '\t')
        comment = strchr(comment + 1, ';');
    return !comment || pairs_refuse(reader, "a blank and a semicolon in a value, which would end it");
}

/* inih's reader: returns the next line, or the end after the first error. */
static char *next_line(char *buffer, int size, void *context)
{
    struct pairs_reader *reader = context;
    if (reader->is_wrong)
        return NULL;
    ssize_t length = getline(&reader->line, &reader->capacity, reader->file);
    if (length < 0) {
        if (ferror(reader->file))
            pairs_refuse(reader, "%s", strerror(errno));
        return NULL;
    }
    reader->number++;
    if (!pairs_is_plain(reader, (size_t)length, (size_t)size - 1))
        return NULL;
    if (*reader->line == '[')
        reader->has_name = false;
    reader->is_continued = reader->has_name && (*reader->line == ' ' || *reader->line == '\t');
    return memcpy(buffer, reader->line, (size_t)length + 1);
}

bool pairs_read(struct pairs *pairs, const char *path)
{
    struct pairs_reader reader = {.pairs = pairs, .file = fopen(path, "re")};
    pairs->number = 0;
    if (!reader.file)
        return pairs_refuse(&reader, "%s", strerror(errno));
    int wrong = ini_parse_stream(next_line, &reader, pairs_take_pair, &reader);
    if (wrong && (!reader.is_wrong || wrong < reader.number)) { /* no pair: only inih has the line */
        reader.number = wrong;
        pairs_refuse(&reader, "expected name = value");
    }
    pairs->number = reader.is_wrong ? reader.number : 0;
    fclose(reader.file);
    free(reader.line);
    return !reader.is_wrong;
}
