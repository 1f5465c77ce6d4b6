/* csv_reader: lines joined to records while a quoted field is open. */
#include "control/foreign/csv/csv_reader.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "control/message.h"

enum { RECORD_MOST = 16 << 20, KEEP = 1 << 20 };

/* A CR, if the first line of the file ends with one that no LF follows. */
static char find_line_end(int fd)
{
    char block[4096], last = 0;
    bool is_quoted = false;
    ssize_t got;
    for (off_t at = 0; at < RECORD_MOST && (got = pread(fd, block, sizeof block, at)) > 0; at += got)
        for (ssize_t i = 0; i < got; last = block[i++]) {
            if (!is_quoted && (last == '\r' || block[i] == '\n'))
                return block[i] == '\n' ? '\n' : '\r';
            is_quoted ^= block[i] == '"';
        }
    return last == '\r' && !is_quoted ? '\r' : '\n';
}

bool csv_reader_open(struct csv_reader *reader, const char *path, char separator)
{
    *reader =
        (struct csv_reader){.separator = separator, .digest = digest_create(), .arena = arena_create("csv")};
    if (input_open(&reader->input, path, -1) && reader->input.size) {
        reader->input.line_most = RECORD_MOST;
        reader->input.line_end = find_line_end(reader->input.fd);
        return true;
    }
    message_print("%s: %s", path,
                  reader->input.fd < 0 ? strerror(errno) : "expected a file that is not empty");
    csv_reader_close(reader);
    return false;
}

void csv_reader_close(struct csv_reader *reader)
{
    input_close(&reader->input);
    digest_destroy(reader->digest);
    arena_destroy(reader->arena);
    builder_free(&reader->text);
}

static enum csv_event next_line(struct csv_reader *reader, struct bytes *line_r, const char **problem_r)
{
    enum input_result result = input_next(&reader->input, true, line_r);
    if (result == INPUT_END)
        return CSV_END;
    if (result != INPUT_LINE) {
        *problem_r = errno == EFBIG ? "a line of more than 16 MB" : strerror(errno);
        return CSV_FAILED;
    }
    digest_add(reader->digest, *line_r);
    digest_add(reader->digest, BYTES("\n"));
    if (reader->input.line == 1 && line_r->size >= 3 && memcmp(line_r->data, "\xEF\xBB\xBF", 3) == 0)
        *line_r = (struct bytes){line_r->data + 3, line_r->size - 3};
    return CSV_RECORD;
}

/* Appends the lines that belong to a record whose first line has an open field. */
static enum csv_event csv_reader_join(struct csv_reader *reader, struct bytes *text, const char **problem_r)
{
    enum csv_event event = CSV_RECORD;
    bool is_open = true;
    builder_clear(&reader->text, KEEP);
    builder_add_bytes(&reader->text, *text);
    while (is_open && event == CSV_RECORD) {
        struct bytes line;
        event = next_line(reader, &line, problem_r);
        if (event != CSV_RECORD)
            break;
        builder_add(&reader->text, &reader->input.line_end, 1);
        builder_add_bytes(&reader->text, line);
        is_open = csv_record_is_open(line, reader->separator, true);
        if (reader->text.size > RECORD_MOST) {
            *problem_r = "a quoted field is not closed within 16 MB";
            event = CSV_FAILED;
        }
    }
    *text = builder_bytes(&reader->text);
    return event == CSV_END ? CSV_RECORD : event; /* an open field is found by csv_record_read */
}

/* The next line that is not empty. */
static enum csv_event next_text(struct csv_reader *reader, struct bytes *text_r, const char **problem_r)
{
    enum csv_event event;
    do {
        event = next_line(reader, text_r, problem_r);
        reader->line = reader->input.line + (event == CSV_FAILED);
    } while (event == CSV_RECORD && (!text_r->size || bytes_equal(*text_r, BYTES("\r"))));
    return event;
}

/* The record that begins with this line, which `event` says was read. */
static enum csv_event csv_reader_finish(struct csv_reader *reader, enum csv_event event, struct bytes text,
                                        struct csv_record *record_r, const char **problem_r)
{
    if (event == CSV_RECORD && csv_record_is_open(text, reader->separator, false))
        event = csv_reader_join(reader, &text, problem_r);
    if (event != CSV_RECORD)
        return event;
    if (text.size && text.data[text.size - 1] == '\r')
        text.size--;
    return csv_record_read(reader->arena, text, reader->separator, record_r, problem_r) ? CSV_RECORD
                                                                                        : CSV_WRONG;
}

enum csv_event csv_reader_next(struct csv_reader *reader, struct csv_record *record_r, const char **problem_r)
{
    struct bytes text;
    arena_reset(reader->arena);
    enum csv_event event = next_text(reader, &text, problem_r);
    return csv_reader_finish(reader, event, text, record_r, problem_r);
}

/* The line sep=X, by which spreadsheets name the separator of a file; some write it in quotes. */
static bool is_sep(struct bytes text)
{
    size_t quote = text.size && *text.data == '"';
    return text.size >= quote + 4 && strncasecmp(text.data + quote, "sep=", 4) == 0;
}

static const char *obey_sep(struct csv_reader *reader, struct bytes text)
{
    if (text.data[text.size - 1] == '\r')
        text.size--;
    char c = text.size == 5 && *text.data != '"' ? text.data[4] : 0;
    if (!csv_record_is_separator(c))
        return "expected behind sep= one of comma, semicolon, tab, colon, blank or |, and nothing else";
    if (reader->separator && reader->separator != c)
        return "sep= names another separator than the mapping";
    reader->separator = c;
    return NULL;
}

enum csv_event csv_reader_header(struct csv_reader *reader, struct csv_record *record_r,
                                 const char **problem_r)
{
    struct bytes text;
    arena_reset(reader->arena);
    enum csv_event event = next_text(reader, &text, problem_r);
    if (event == CSV_RECORD && is_sep(text)) {
        const char *problem = obey_sep(reader, text);
        if (problem) {
            *problem_r = problem;
            return CSV_WRONG;
        }
        event = next_text(reader, &text, problem_r);
    }
    if (event == CSV_RECORD)
        reader->separator = csv_record_separator(reader->arena, text, reader->separator, problem_r);
    return event == CSV_RECORD && !reader->separator
               ? CSV_WRONG
               : csv_reader_finish(reader, event, text, record_r, problem_r);
}

void csv_reader_digest(struct csv_reader *reader, char hex_r[CRYPTO_SHA256_HEX + 1])
{
    digest_end_hex(reader->digest, hex_r);
}
